"""Whether an expression differs between ranks, and on which ranks a condition holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trainprobe.lint.calls import argument_for, callers
from trainprobe.lint.modules import SCOPES, Module, last_name

if TYPE_CHECKING:
    from trainprobe.lint.modules import Class, Function
    from trainprobe.lint.program import Program

Polarity = Literal["main", "others", "some"]
Kind = Literal["", "rank", "text", "derived", "main", "others", "some"]
DEEPEST = 12

ARITHMETIC = (ast.Mod, ast.FloorDiv, ast.Sub, ast.Add, ast.Mult)
NEGATED: dict[Kind, Kind] = {
    "main": "others",
    "others": "main",
    "rank": "main",
    "text": "",
    "derived": "some",
    "some": "some",
    "": "",
}
AS_TYPE: dict[tuple[str, Kind], Kind] = {
    ("int", "text"): "rank",
    ("str", "rank"): "text",
    ("bool", "rank"): "others",
    ("bool", "text"): "",
}
VARIABLES = re.compile(
    r"(LOCAL_|GLOBAL_|NODE_|GROUP_|ROLE_|WORLD_)?RANK|SLURM_(PROCID|LOCALID|NODEID)"
    r"|OMPI_COMM_WORLD_(LOCAL_|NODE_)?RANK|PMI_RANK|PMIX_RANK|MV2_COMM_WORLD_(LOCAL_)?RANK"
)
RANK_NAMES = set(
    """
    rank local_rank global_rank node_rank world_rank process_index local_process_index process_rank
    rank_id proc_id dp_rank ddp_rank ddp_local_rank dist_rank my_rank myrank cur_rank current_rank
    gpu_rank data_parallel_rank
    """.split()
)
RANK_CALLS = set(
    """
    get_rank get_local_rank get_global_rank get_world_rank get_node_rank get_node_local_rank
    get_process_index get_ordinal get_local_ordinal comm_get_rank get_data_parallel_rank
    global_rank local_rank node_rank
    """.split()
)
MAIN = re.compile(
    r"_*((is|am|on)_)?((local|global|world|node)_)?(main|master|primary|chief|leader)(_?(process"
    r"|rank|node|worker|proc))?"
    r"|_*(is_|on_)?(global_|local_|world_)?(rank|process|proc)_?(zero|0)(_process)?"
    r"|_*is_(global_zero|world_process_zero|local_process_zero|first_rank|first_process|rank_?0"
    r"|zero_rank)"
    r"|_*(is_)?(rank|process)(_is)?_(zero|0)"
)
SAVING_FLAGS = {"should_save"}
"""Flags of transformers' TrainingArguments that hold on the main rank."""
BARE_WORDS = set(
    """
    main _main master primary leader chief local_main global_main world_main local_master
    """.split()
)
EXCHANGES = re.compile(r"broadcast|reduce|gather|sync|scatter|share|agree", re.IGNORECASE)
"""Names of functions by which ranks tell each other a value."""
RANK_ZERO_DECORATORS = re.compile(
    r"(.*[._])?(rank_?(zero|0)_only|(local_)?main_process_only|master_only|main_only"
    r"|on_(local_)?main_process|rank_?zero|only_on_(main|master|rank).*)(\(\))?"
)
OF_MATRICES = re.compile(r"lora|adapter|peft|galore|low_?rank|svd|matrix", re.IGNORECASE)
"""Names of what has a rank in the sense of algebra."""
SHARDING = re.compile(r"distributed_type|deepspeed|fsdp|zero_?3", re.IGNORECASE)


@dataclass(frozen=True)
class RankTest:
    """A condition that ranks differ in. "main": true on rank 0 only; "others": on the rest."""

    polarity: Polarity
    says: str

    def turned(self) -> RankTest:
        says = self.says[4:] if self.says.startswith("not ") else f"not {self.says}"
        return RankTest(_turned(self.polarity), says)


def _turned(polarity: Polarity) -> Polarity:
    return "others" if polarity == "main" else "main" if polarity == "others" else "some"


def test(program: Program, module: Module, node: ast.expr) -> RankTest | None:
    """How a condition depends on the rank; None where it seems equal on all ranks."""
    kind = _as_truth(kind_of(program, module, node))
    return RankTest(kind, module.source_of(node)) if kind else None


def _as_truth(kind: Kind) -> Polarity | Literal[""]:
    if kind == "rank":  # `if rank:` holds on all but 0
        return "others"
    if kind == "derived":
        return "some"
    # the environment holds texts, and "0" is as true as "1"
    return "" if kind == "text" else kind


def kind_of(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Kind:
    """Whether it holds the "rank", the rank as "text", a "derived" number, or a condition "main",
    "others", "some".
    """
    memory: dict[ast.AST, Kind] = program.memory.setdefault("ranks", {})
    if node in memory:
        return memory[node]
    if depth > DEEPEST:
        return ""
    memory[node] = ""  # ends circles such as `rank = rank or 0`
    answer = memory[node] = _kind(program, module, node, depth + 1)
    return answer


def _kind(program: Program, module: Module, node: ast.expr, depth: int) -> Kind:  # noqa: PLR0911 - one return per kind of expression
    if isinstance(node, ast.Name):
        return _name(program, module, node, depth)
    if isinstance(node, ast.Attribute):
        return _attribute(program, module, node, depth)
    if isinstance(node, ast.Call):
        return _call(program, module, node, depth)
    if isinstance(node, ast.Subscript):
        return "text" if _is_variable(program, module, node.value, node.slice) else ""
    if isinstance(node, ast.Compare):
        return _compare(program, module, node, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = kind_of(program, module, node.operand, depth)
        return NEGATED[inner]
    if isinstance(node, ast.BoolOp):
        return _together(program, module, node, depth)
    if isinstance(node, ast.BinOp):
        kinds = {kind_of(program, module, item, depth) for item in (node.left, node.right)}
        return "derived" if isinstance(node.op, ARITHMETIC) and kinds & {"rank", "derived"} else ""
    if isinstance(node, ast.IfExp):
        return kind_of(program, module, node.body, depth) or kind_of(
            program, module, node.orelse, depth
        )
    if isinstance(node, ast.NamedExpr):
        return kind_of(program, module, node.value, depth)
    return ""


def _together(program: Program, module: Module, node: ast.BoolOp, depth: int) -> Kind:
    kinds = [kind for value in node.values if (kind := kind_of(program, module, value, depth))]
    if not kinds:
        return ""
    if isinstance(node.op, ast.Or) and kinds[0] in {"rank", "text", "derived"}:  # `rank or 0`
        return kinds[0]
    if isinstance(node.op, ast.Or) and any(
        _is_asked_for(program, module, value) or _is_sharding(value) for value in node.values
    ):
        # `not main_only or is_main`, `args.all_ranks or is_main`, `distributed_type == DEEPSPEED or
        # is_main`: what the caller wants, or how the model is split, decides
        return ""
    if isinstance(node.op, ast.Or) and len(kinds) < len(node.values) and kinds[0] == "others":
        return "some"
    truths = [truth for kind in kinds if (truth := _as_truth(kind))]
    return next((truth for truth in truths if truth != "some"), truths[0] if truths else "")


def _is_sharding(node: ast.expr) -> bool:
    return any(
        SHARDING.search(getattr(item, "id", "") or getattr(item, "attr", ""))
        for item in ast.walk(node)
    )


def _is_asked_for(program: Program, module: Module, node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Name | ast.Attribute) and not kind_of(program, module, node)


def _compare(program: Program, module: Module, node: ast.Compare, depth: int) -> Kind:
    return _set_or_not(program, module, node) or _compared(program, module, node, depth)


def _compared(program: Program, module: Module, node: ast.Compare, depth: int) -> Kind:  # noqa: PLR0911 - one return per form
    if len(node.ops) > 1:  # `0 < rank < world - 1`
        ends = [node.left, *node.comparators]
        pairs = zip(ends, node.ops, ends[1:], strict=False)
        single = (ast.Compare(one, [sign], [other]) for one, sign, other in pairs)
        return _first(_compared(program, module, each, depth) for each in single)
    left, right, operator = node.left, node.comparators[0], node.ops[0]
    kind, other = kind_of(program, module, left, depth), right
    if not kind:
        kind, other = kind_of(program, module, right, depth), left
        if isinstance(operator, ast.In | ast.NotIn):
            return ""
    if not kind:
        return ""
    value = program.values.of(module, other)
    equal = isinstance(operator, ast.Eq | ast.Is)
    unequal = isinstance(operator, ast.NotEq | ast.IsNot)
    if kind in {"main", "others", "some"}:
        if value is True or value is False:
            same = (value is True) == equal
            return kind if same else _turned(kind)
        # `patience >= most`, where only the main rank counts
        return "some" if _is_counted(program, module, left, right) else ""
    if kind == "text" and isinstance(value, int):
        return ""  # "0" == 0 holds on no rank
    value = [_number(each) for each in value] if isinstance(value, list | tuple) else _number(value)
    if (isinstance(value, int) and value < 0) or value is None:
        return ""  # "distributed at all?", which all ranks answer alike
    if kind == "derived":
        return "some" if equal or unequal else ""
    if isinstance(operator, ast.In | ast.NotIn):
        if not isinstance(value, list | tuple | range):
            return ""
        if 0 in value and all(each in (0, -1) for each in value):
            return "main" if isinstance(operator, ast.In) else "others"
        return "some"  # the members of a group, who may meet among themselves
    return _against(operator, value, flipped=other is left, equal=equal, unequal=unequal)


def _set_or_not(program: Program, module: Module, node: ast.Compare) -> Kind:
    """`reason is not None`, where only the main rank gives `reason` a value."""
    match node:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as holder,
            ops=[ast.Is() | ast.IsNot() as operator],
            comparators=[ast.Constant(value=None)],
        ):
            if condition_around(program, module, node) is not None:
                return ""  # whoever comes here has come to where it is set
            kind = set_on(program, module, holder)
            return kind if isinstance(operator, ast.IsNot) else NEGATED[kind]
    return ""


def condition_around(
    program: Program, module: Module, node: ast.AST, *, within: tuple[type[ast.AST], ...] = SCOPES
) -> RankTest | None:
    """The nearest condition on the rank around it inside one of `within`, as it holds there."""
    child = node
    for up in module.ancestors(node):
        if isinstance(up, within):
            return None
        if isinstance(up, ast.If) and child is not up.test:
            found = test(program, module, up.test)
            if found is not None:
                return found if child in up.body else found.turned()
        child = up
    return None


def set_on(program: Program, module: Module, holder: ast.Name | ast.Attribute) -> Kind:
    """The ranks that give a name of this function, or an attribute of `self`, a value other than
    its empty first one: "main", or "" where others may, too, also by what they receive.
    """
    memory: dict[ast.AST, Kind] = program.memory.setdefault("set on", {})
    if holder not in memory:
        memory[holder] = ""  # ends circles
        told = {_value_on(program, *each) for each in _given_to(program, module, holder)}
        # an empty value that the main rank alone gives takes nothing from the others
        memory[holder] = "main" if told in ({"main"}, {"main", "empty"}) else ""
    return memory[holder]


def _given_to(
    program: Program, module: Module, holder: ast.Name | ast.Attribute
) -> list[tuple[Module, ast.AST | None]]:
    """All that gives a name or an attribute its value: an expression, a statement whose value is
    not known, None for what nobody is seen to give.
    """
    if isinstance(holder, ast.Attribute):
        cls = program.class_named(program.dotted(module, holder.value).removesuffix("()"))
        return (
            list(program.names.attribute_values(cls, holder.attr))
            if cls is not None and program.names.method(cls, holder.attr) is None
            else []
        )
    found = program.names.bindings(module, holder)
    scope = module.scope_of(holder)
    if len(found) == 1 and found[0].kind == "param":
        function = module.function_of(holder)
        if function is None or holder.id not in function.parameters:
            return []
        return [
            (site.module, entry)
            if (entry := argument_for(site.node, function, holder.id)) is not None
            else (module, function.default_of(holder.id))
            for site in callers(program, function)
        ]
    kinds = {"value", "other"}
    if any(each.kind not in kinds or module.scope_of(each.node) is not scope for each in found):
        return []
    return [(module, each.value or each.node) for each in found]


def changed_on(program: Program, module: Module, holder: ast.Name | ast.Attribute) -> Kind:
    """How ranks differ in a name of this function, or an attribute of `self`, that begins as one
    constant on all of them and that only the main rank changes: "main" where it begins false,
    "others" where it begins true. "" where others change it, too, or ranks meet about it.
    """
    memory: dict[ast.AST, Kind] = program.memory.setdefault("changed on", {})
    if holder not in memory:
        memory[holder] = ""  # ends circles
        memory[holder] = _changed_on(program, module, holder)
    return memory[holder]


def _changed_on(program: Program, module: Module, holder: ast.Name | ast.Attribute) -> Kind:
    begins: set[bool] = set()
    changed = False
    for where, statement, value in _assigned(program, module, holder):
        constant = value if isinstance(value, ast.Constant) else None
        if _only_main(program, where, statement):
            changed = changed or constant is None or bool(constant.value) not in begins
        elif constant is not None:
            begins.add(bool(constant.value))
        else:
            return ""
    if not changed or len(begins) != 1 or _is_exchanged(program, module, holder):
        return ""
    return "others" if begins.pop() else "main"


def _assigned(
    program: Program, module: Module, holder: ast.Name | ast.Attribute
) -> list[tuple[Module, ast.AST, ast.expr | None]]:
    """Every statement that gives it a value, in source order, with the value where one is shown;
    nothing where some are of other places.
    """
    if isinstance(holder, ast.Name):
        scope = module.scope_of(holder)
        found = program.names.bindings(module, holder)
        if any(
            one.kind not in {"value", "other"}
            or module.scope_of(one.node) is not scope
            or not isinstance(one.node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            for one in found
        ):
            return []
        return [(module, one.node, one.value) for one in found]
    cls = program.class_named(program.dotted(module, holder.value).removesuffix("()"))
    if cls is None or program.names.method(cls, holder.attr) is not None:
        return []
    return _attributes_assigned(program, cls).get(holder.attr, [])


def _attributes_assigned(
    program: Program, cls: Class
) -> dict[str, list[tuple[Module, ast.AST, ast.expr | None]]]:
    """The statements in a class's methods that give an attribute of `self` a value, by its name."""
    memory: dict[Class, dict[str, list[tuple[Module, ast.AST, ast.expr | None]]]]
    memory = program.memory.setdefault("attributes assigned", {})
    if cls not in memory:
        found = memory[cls] = {}
        for method in cls.methods.values():
            for node in ast.walk(method.node):
                if isinstance(node, ast.Assign | ast.AugAssign):
                    value = None if isinstance(node, ast.AugAssign) else node.value
                    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                        if isinstance(target, ast.Attribute) and (
                            [last_name(target.value)] == method.parameters[:1]
                        ):
                            found.setdefault(target.attr, []).append((cls.module, node, value))
    return memory[cls]


def _only_main(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether only the main rank comes to a statement: by a condition around it, or by one before
    it at which all others return.
    """
    if _under_main(program, module, node):
        return True
    function = module.function_of(node)
    return function is not None and any(
        isinstance(each, ast.If)
        and each.lineno < getattr(node, "lineno", 0)
        and not each.orelse
        and isinstance(each.body[-1], ast.Return)
        and _as_truth(kind_of(program, module, each.test)) == "others"
        for each in function.node.body
    )


def _is_exchanged(program: Program, module: Module, holder: ast.Name | ast.Attribute) -> bool:
    """Whether a call that may be an exchange between ranks is given it: in its function, or for an
    attribute in any method of the class.
    """
    function, name = module.function_of(holder), last_name(holder)
    functions = [function] if function is not None else []
    if isinstance(holder, ast.Attribute):
        cls = program.class_named(program.dotted(module, holder.value).removesuffix("()"))
        functions += cls.methods.values() if cls is not None else ()
    return not functions or any(
        may_exchange(call, name) for each in functions for call in each.calls
    )


def may_exchange(call: ast.Call, name: str) -> bool:
    """Whether a call that may be an exchange between ranks is given what has this name."""
    return EXCHANGES.search(last_name(call.func)) is not None and any(
        last_name(part) == name
        for entry in (*call.args, *(keyword.value for keyword in call.keywords))
        for part in ast.walk(entry)
    )


def _value_on(program: Program, module: Module, value: ast.AST | None) -> str:
    """Return "main" for a value that only the main rank has, "empty" for None, "" for others."""
    match value:
        case None:
            return ""
        case ast.Constant(value=None):
            return "empty"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            kind = _as_truth(kind_of(program, module, test))
            own, other = (body, orelse) if kind == "main" else (orelse, body)
            if kind in {"main", "others"} and _value_on(program, module, other) == "empty":
                return "empty" if _value_on(program, module, own) == "empty" else "main"
        case ast.Name() | ast.Attribute():
            if set_on(program, module, value):
                return "main"
    # what a caller gives stands under the caller's conditions, which say nothing of the parameter
    given = isinstance(module.parents.get(value), ast.Call | ast.keyword)
    return "main" if not given and _under_main(program, module, value) else ""


def _under_main(program: Program, module: Module, node: ast.AST) -> bool:
    child = node
    for up in module.ancestors(node):
        if isinstance(up, SCOPES):
            return False
        if isinstance(up, ast.If):
            kind = _as_truth(kind_of(program, module, up.test))
            if kind and (kind if child in up.body else _turned(kind)) == "main":
                return True
        child = up
    return False


def _is_counted(program: Program, module: Module, *sides: ast.expr) -> bool:
    return any(
        isinstance(side, ast.Name | ast.Attribute) and changed_on(program, module, side)
        for side in sides
    )


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else value


def _against(
    operator: ast.cmpop, value: object, *, flipped: bool, equal: bool, unequal: bool
) -> Kind:
    if equal or unequal:
        return ("main" if equal else "others") if value == 0 else "some"
    more = isinstance(operator, ast.Gt | ast.GtE) != flipped
    strict = isinstance(operator, ast.Gt | ast.Lt)
    if isinstance(value, int):
        # as `rank > bound` or `rank < bound`
        bound = value + (0 if strict else (-1 if more else 1))
        if more:
            return "others" if bound == 0 else "" if bound < 0 else "some"
        return "main" if bound == 1 else "" if bound < 1 else "some"
    return ""  # `rank >= world_size` and its like check an argument


def _name(program: Program, module: Module, node: ast.Name, depth: int) -> Kind:
    held = set_on(program, module, node) or changed_on(program, module, node)
    if held:
        return held
    found = program.names.bindings(module, node)
    kinds: list[Kind] = []
    unknown = not found
    for binding in found[:6]:
        if binding.kind == "value" and binding.value is not None:
            kinds.append(kind_of(program, module, binding.value, depth))
            unknown = unknown or isinstance(binding.value, ast.Call | ast.Subscript | ast.Attribute)
        elif binding.kind == "unpack" and binding.value is not None:
            unknown = True
        elif binding.kind == "import":
            kinds.append(_imported(program, module, binding.dotted, depth))
        elif binding.kind == "param" and _is_told_alike(program, module, node):
            continue
        elif binding.kind in {"param", "other"}:
            unknown = True
    if any(kinds) or not unknown or any(item.kind in {"def", "class"} for item in found):
        return _first(kinds)
    return _by_name(node.id)


def _is_told_alike(program: Program, module: Module, node: ast.Name, depth: int = 0) -> bool:
    """Whether all calls give a parameter True or False themselves, so that no rank decides."""
    function = module.function_of(node)
    if function is None or node.id not in function.parameters or depth > 3:
        return False
    given = [
        (site.module, argument_for(site.node, function, node.id) or function.default_of(node.id))
        for site in callers(program, function)
    ]
    return bool(given) and all(
        _truth(entry) is not None
        or (isinstance(entry, ast.Name) and _is_told_alike(program, where, entry, depth + 1))
        for where, entry in given
    )


def _first(kinds: Iterable[Kind]) -> Kind:
    for kind in kinds:
        if kind:
            return kind
    return ""


def _imported(program: Program, module: Module, dotted: str, depth: int) -> Kind:
    target = program.import_target(module, dotted)
    head, _, last = target.rpartition(".")
    other = program.modules.get(head)
    if other is not None and other is not module:
        for binding in other.bindings[other.tree].get(last, []):
            if binding.kind == "value" and binding.value is not None:
                return kind_of(program, other, binding.value, depth)
        return ""
    return _by_name(last)


def _by_name(name: str) -> Kind:
    low = name.lower()
    if low in RANK_NAMES:
        return "rank"
    return "main" if low not in BARE_WORDS and MAIN.fullmatch(low) else ""


def _attribute(program: Program, module: Module, node: ast.Attribute, depth: int) -> Kind:
    if node.attr == "rank" and OF_MATRICES.search(last_name(node.value)):
        return ""
    base = program.dotted(module, node.value)
    if base.endswith("()"):
        cls = program.class_named(base[:-2])
        if cls is not None:
            method = program.names.method(cls, node.attr)
            if method is not None:
                return returned(program, method, depth) or _by_name(node.attr)
            held = set_on(program, module, node) or changed_on(program, module, node)
            if held:
                return held
            values = program.names.attribute_values(cls, node.attr)
            found = _first(kind_of(program, where, value, depth) for where, value in values)
            if found or (values and all(isinstance(value, ast.Constant) for _, value in values)):
                return found
    if node.attr in SAVING_FLAGS and last_name(node.value).endswith("args"):
        return "main"
    by_name = _by_name(node.attr)
    if by_name or not isinstance(node.value, ast.Name):
        return by_name
    return _set_elsewhere(program, node.value.id, node.attr, depth)


def _set_elsewhere(program: Program, holder: str, name: str, depth: int) -> Kind:
    """What `args.saves = is_master(args)` elsewhere says of `args.saves`."""
    known: dict[tuple[str, str], list[tuple[Module, ast.expr]]] | None = program.memory.get(
        "attributes set"
    )
    if known is None:
        known = program.memory["attributes set"] = {}
        for module in program.modules.values():
            for statement in module.of(ast.Assign):
                for target in statement.targets:
                    match target:
                        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                            if owner not in {"self", "cls"}:
                                place = (module, statement.value)
                                known.setdefault((owner, attribute), []).append(place)
    kinds = (
        kind_of(program, where, value, depth) for where, value in known.get((holder, name), [])[:4]
    )
    return _first(kind for kind in kinds if kind in {"main", "others"})


def _call(program: Program, module: Module, node: ast.Call, depth: int) -> Kind:
    called = program.dotted(module, node.func)
    if called in {"int", "bool", "str"} and len(node.args) >= 1:
        inner = kind_of(program, module, node.args[0], depth)
        return AS_TYPE.get((called, inner), inner)
    if called == "os.getenv" or called.endswith(("os.environ.get", "os.environ.pop")):
        return "text" if node.args and _is_variable(program, module, None, node.args[0]) else ""
    function = program.function(called)
    if function is not None:
        statement = returned(program, function, depth)
        if statement:
            return statement
    last = called.rpartition(".")[2]
    if last.lstrip("_") in RANK_CALLS:
        # the rank in a group of its own is not the rank of the job
        grouped = node.args or any(keyword.arg == "group" for keyword in node.keywords)
        return "derived" if grouped and called.startswith("torch.distributed.") else "rank"
    if called in {"horovod.torch.rank", "horovod.torch.local_rank", "jax.process_index"}:
        return "rank"
    low = last.lower()
    plain = function is None or not function.calls
    return "main" if plain and low not in BARE_WORDS and MAIN.fullmatch(low) else ""


def returned(program: Program, function: Function, depth: int = 0) -> Kind:
    """Say what a function of the project returns: the kind of the first return that has any."""
    memory: dict[Function, Kind] = program.memory.setdefault("returned", {})
    if function not in memory:
        memory[function] = ""
        memory[function] = _first(
            kind_of(program, function.module, item.value, depth)
            for item in function.returns[:8]
            if item.value is not None
        ) or _told(program, function, depth)
    return memory[function]


def _told(program: Program, function: Function, depth: int) -> Kind:
    """Say what `if rank != 0: return False` and `return True` answer."""
    truths = [(item, _truth(item.value)) for item in function.returns[:8]]
    if {truth for _, truth in truths} != {True, False}:
        return ""
    for item, truth in truths:
        child: ast.AST = item
        for up in function.module.ancestors(item):
            if up is function.node:
                break
            if isinstance(up, ast.If):
                kind = _as_truth(kind_of(program, function.module, up.test, depth))
                if kind:
                    return kind if (child in up.body) == truth else _turned(kind)
            child = up
    return ""


def _truth(node: ast.expr | None) -> bool | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _is_variable(program: Program, module: Module, mapping: ast.expr | None, key: ast.expr) -> bool:
    if mapping is not None and program.dotted(module, mapping) != "os.environ":
        return False
    value = program.values.of(module, key)
    return isinstance(value, str) and VARIABLES.fullmatch(value) is not None
