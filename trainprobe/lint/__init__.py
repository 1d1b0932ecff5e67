"""Static reading of training code: patterns that end as hangs and crashes, found before anything
runs. Nothing here imports or runs what it reads.

A rule is a file `rules/<pattern>.py` with `RULE = Rule(…)` and `find(program)`, found by its
presence (docs/guides/add-a-lint-rule.md). What it can ask:

The program
    program.examined              the modules in which findings are looked for
    program.dotted(module, expr)  "torch.distributed.barrier", "accelerate.Accelerator().gather";
                                  "~x.save" where the origin of x is unknown
    program.value(module, expr)   its constant value, or values.UNKNOWN (compare with `is`)
    program.called(module, call)  the project's Function that a call runs, or None
    program.class_named(dotted)   the project's Class, or None
    program.memory                a dict for what a rule works out once

A module
    module.of(ast.Call)           all nodes of exactly one type
    module.scope_of(node), function_of, class_of, statement_of, ancestors, source_of

Calls and expressions
    calls.calls_to(program, "torch.save")        calls by full name
    calls.callers(program, function)             the calls that run a function
    calls.reaches(program, function)             the functions that it may run, itself included
    expressions.origin(program, module, expr)    the expression behind a name or an attribute
    expressions.resolved_argument(program, Call(module, call, ""), "num_workers", 5)
    jobs.calls_in_job(program, module, "…")      calls in the modules of the same process

Ranks
    ranks.test(program, module, expr)            RankTest("main" | "others" | "some"), or None
    flow.guards(program, module, node)           rank conditions under which a node runs
    flow.before(module, first, second)           whether one runs before the other
    collectives.collective_of(program, module, call)    the collective that a call is, or None
    reached.reached_by_call(program, module, call)      those that it leads to
    reached.reached_by_function(program, function)      those that a function leads to

`order.Order` puts the events of a process in order, `fixing` and `rewrites` make edits, and
`running.findings_of(program)` runs all rules.
"""
