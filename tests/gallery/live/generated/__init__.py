"""Jobs that nobody chose: drawn by a seed out of framework, mechanism of failure, place, rank,
launcher and world size.

The part that makes jobs (`maker`, `bases`, `mechanisms`, `launchers`, `running`) knows nothing of
the tool that looks at them, of its rules or of the rest of the gallery; only `judge` and `scores`
do. A mechanism labels its jobs with the ids of the catalogue and nothing else of it.

Seeds come in two ranges. *Development* seeds may be run as often as one likes, and people may read
what was missed and mend the tool. *Reporting* seeds are judged once and before anybody mends what
they show; only they stand in `results.json` and in docs/accuracy.md. A seed makes another job
once the maker itself has changed, so a maker that is changed asks for a fresh reporting range.
"""

DEVELOPMENT = range(100_000)
REPORTING = range(1_000_000, 10_000_000)
