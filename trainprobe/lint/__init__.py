"""Static reading of training code: patterns that end as hangs and crashes, found before anything runs. Nothing here imports or runs what it reads.

A rule is a file `rules/<pattern>.py` with one `RULE = Rule(id, cause, title, why, confidence, find)`, found by its presence. What it asks:

    for module in program.examined:                    # Module: path, name, tree, lines, functions, classes, given
        for call in module.of(ast.Call):               # all nodes of exactly one type, in no promised order
            program.dotted(module, call.func)          # "torch.distributed.barrier"; "accelerate.Accelerator().gather"; "~x.save" if unknown
            program.called(module, call)               # the project's Function that it runs, or None; `.calls`, `.returns`, `.parameters`, `.cls`
            program.value(module, node)                # constant, or values.UNKNOWN (test with `is`): assignments, defaults, config files, argparse
            program.values.keyword(module, call, "num_workers", 5, default=0)     # value of an argument; values.argument() gives its node
            module.scope_of(node), function_of(node), class_of(node), ancestors(node), statement_of(node), source_of(node)
            program.names.lookup(module, "name", at)   # the bindings of a name: kind, node, value, line
    program.names.definition(dotted)                   # Function | Class of the project; Class: .methods, .attributes ("self.x = v"), .node.bases
    program.finding(RULE_ID, CAUSE, module, node, says=…, why=…, confidence=…, fix=Fix(…))
    ranks.test(program, module, expr)                  # RankTest(polarity "main" | "others" | "some", says) or None
    flow.guards(program, module, node)                 # rank conditions under which node runs, early returns by rank before it included
    flow.before(module, a, b)                          # whether a runs before b in one function or at module level
    calls.collective_of(program, module, call)         # Collective(name, says, sure) that a call does itself, or None
    calls.borne(program, function)                     # the collectives that a function does, also through others
    calls.reaches(program, function)                   # the project functions that it calls, itself included
    program.memory                                     # a dict for what a rule works out once

`fixing.insert_line`, `fixing.replace` and `fixing.add_keyword` make edits. `running.findings_of(program)` runs all rules.
"""
