"""`trainprobe diagnose`: climb the ladder, up to the user's own command."""

from __future__ import annotations

from typing import Annotated

import typer

from trainprobe.cli.options import (
    Case,
    HtmlFile,
    JsonFile,
    NoColor,
    OutputFile,
    Quiet,
    ShareFile,
    Verbose,
    flag,
    format_option,
    option,
)


def diagnose(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    gpus: Annotated[str | None, option("N", "Ranks, each on its own GPU.")] = None,
    nproc: Annotated[
        str | None, option("N", "Ranks on this machine, without GPUs where there are none.")
    ] = None,
    python: Annotated[
        str | None, option("PATH", "The Python of the job, where it is not the first on PATH.")
    ] = None,
    imports: Annotated[
        list[str] | None,
        option("A,B", "Modules to import one by one, in place of those that the script names."),
    ] = None,
    only: Annotated[list[str] | None, option("RUNG,...", "Climb these rungs and no other.")] = None,
    skip: Annotated[
        list[str] | None,
        option("RUNG,...", "Leave these rungs out; `lint` leaves the script's source unread."),
    ] = None,
    ranks: Annotated[
        str | None, option("1,2,4", "Try your command at these numbers of ranks, smallest first.")
    ] = None,
    rows: Annotated[
        str | None,
        option("2,100,1000", "Sizes of the data: of {rows} in your command, and of --dataset."),
    ] = None,
    ablate: Annotated[
        bool,
        flag(
            "Where a cell fails, change one knob at a time and say which one heals it.", "--ablate"
        ),
    ] = False,
    knob: Annotated[
        list[str] | None, option("NAME=VALUE", "One more knob for --ablate; may be repeated.")
    ] = None,
    resume: Annotated[
        str | None,
        option(
            "DIR", "Go on with the climb of this case; what it has answered is not asked again."
        ),
    ] = None,
    dataset: Annotated[
        str | None, option("MODULE:NAME", "Your own data: pkg.module:factory or file.py:factory.")
    ] = None,
    collate: Annotated[
        str | None, option("MODULE:NAME", "The collate function for --dataset.")
    ] = None,
    batch_size: Annotated[str | None, option("N", "Rows in a batch of --dataset.")] = None,
    workers: Annotated[str | None, option("0,2,4", "Numbers of loader workers to try.")] = None,
    model: Annotated[
        str | None,
        option("MODULE:NAME", "Your own model: pkg.module:factory, file.py:factory, or a folder."),
    ] = None,
    sample: Annotated[
        str | None,
        option(
            "MODULE:NAME",
            "A batch for --model, or what makes one, of any size or of (rows, length).",
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        option(
            "HOSTS|all",
            "Ranks across these hosts, --nproc on each; `all` for those of the SLURM allocation.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        option("cpu|cuda", "Where the ranks run; GPUs by default, where torch can use them."),
    ] = None,
    bench_steps: Annotated[
        str | None, option("N", "Timed steps of --model for its throughput; 20 by default.")
    ] = None,
    fuzz: Annotated[
        str | None,
        option("N", "Random configurations of --model to try; 12 by default, 0 for none."),
    ] = None,
    seed: Annotated[
        str | None, option("N", "What the stress test of --model is drawn from; 0 by default.")
    ] = None,
    planned: Annotated[
        str | None,
        option("rows=N,...", "What the real run will have: rows=14.8M,ranks=8,workers=4."),
    ] = None,
    timeout: Annotated[
        str | None, option("S", "End the climb after S seconds and report what was learnt.")
    ] = None,
    case: Case = None,
    format_name: Annotated[str | None, format_option("diagnosis")] = None,
    output_file: OutputFile = None,
    json_to: JsonFile = None,
    html_to: HtmlFile = None,
    share_to: ShareFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
    config: Annotated[
        str | None, option("FILE", "Settings; ./trainprobe.yaml by default, where there is one.")
    ] = None,
    probe_dir: Annotated[
        list[str] | None, option("DIR", "A folder with more probes; may be repeated.")
    ] = None,
) -> int:
    """Climb a ladder of small checks, from the host up to your own command, and say what is broken.

    Every rung runs in processes of its own with a deadline. Nothing has to be prepared in the job.
    A script (train.py) is launched on 1, 2, 4 ... N ranks by trainprobe; anything else is run as
    your own command, with {ranks} replaced by the number of ranks.

    \b
    Examples:
      trainprobe diagnose --nproc 4
      trainprobe diagnose --gpus 8 --python /envs/llm/bin/python -- train.py --config base.yaml
      trainprobe diagnose --gpus 8 -- torchrun --nproc-per-node {ranks} train.py --config base.yaml
      trainprobe diagnose --ranks 1,2,4 --rows 2,100 --ablate -- train.py --max_samples {rows}
      trainprobe diagnose --nodes node[1-4] --gpus 8 -- train.py --config base.yaml
      trainprobe diagnose --only model_stress --model model.py:build --sample model.py:batch
    """  # noqa: D301 - \b keeps the lines of the example apart
    from trainprobe.cli.arguments import (
        MOST_DRAWN,
        MOST_ROWS,
        MOST_SEED,
        MOST_STEPS,
        device_name,
        form_of,
        knobs,
        names,
        node_list,
        planned_sizes,
        seconds,
        sizes,
        whole_number,
    )
    from trainprobe.cli.exit_codes import code_of_report
    from trainprobe.cli.live_ladder import watching
    from trainprobe.cli.output import output_of, write_result
    from trainprobe.config import read_settings
    from trainprobe.errors import UsageError
    from trainprobe.model.request import DiagnoseRequest

    words = tuple(context.args)
    if gpus is not None and nproc is not None:
        raise UsageError("--gpus and --nproc both set the number of ranks.", "Give one of them.")
    output = output_of(
        "diagnosis",
        format_name,
        output_file,
        json_to,
        html_to=html_to,
        quiet=quiet,
        share_to=share_to,
        no_color=no_color,
        verbose=verbose,
    )
    settings = read_settings(config)
    asked_nproc, asked_gpus = whole_number("--nproc", nproc), whole_number("--gpus", gpus)
    request = DiagnoseRequest(
        nproc=asked_nproc if asked_nproc or asked_gpus else settings.nproc,
        gpus=asked_gpus,
        interpreter=python,
        form=form_of(words, (context.obj or {}).get("after_dashes", len(words))),
        argv=words,
        imports=names(imports) if imports else settings.imports,
        only=names(only or ()) or settings.only,
        skip=names(skip or ()) or settings.skip,
        timeout_s=seconds("--timeout", timeout) or settings.timeout_s,
        case=case,
        probe_dirs=tuple(probe_dir or ()),
        ranks=sizes("--ranks", ranks),
        rows=sizes("--rows", rows, most=MOST_ROWS),
        ablate=ablate,
        knobs=knobs(knob or ()),
        resume=resume,
        dataset=dataset or "",
        collate=collate or "",
        batch_size=whole_number("--batch-size", batch_size),
        workers=sizes("--workers", workers, least=0),
        model=model or "",
        sample=sample or "",
        device=device_name(device),
        bench_steps=whole_number("--bench-steps", bench_steps, most=MOST_STEPS),
        fuzz=whole_number("--fuzz", fuzz, least=0, most=MOST_DRAWN),
        seed=whole_number("--seed", seed, least=0, most=MOST_SEED),
        planned=planned_sizes(planned),
        nodes=node_list(nodes),
        config=config or "",
    )
    from trainprobe.pipelines import diagnose as climb

    with watching(quiet=quiet, no_color=no_color) as progress:
        report = climb(request, settings, progress)
    write_result(output, report)
    return output.exit_code(report, code_of_report(report))
