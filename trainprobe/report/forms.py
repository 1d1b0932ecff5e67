"""A report in the form that was asked for by name: those for machines, each written by its own module."""

from __future__ import annotations

from trainprobe.model.diagnosis import Report


def in_form(report: Report, form: str, at: float) -> str:
    """Return `report` as junit, prometheus, nagios or json, which is also what any other name gives. `at` is the time of the run, Unix time in seconds."""
    if form == "junit":
        from trainprobe.report.junit import junit_text

        return junit_text(report)
    if form == "prometheus":
        from trainprobe.report.prometheus import prometheus_text

        return prometheus_text(report, at)
    if form == "nagios":
        from trainprobe.report.nagios import nagios_line

        return nagios_line(report)
    from trainprobe.report.json_report import report_text

    return report_text(report)
