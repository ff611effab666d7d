"""The numbered cases of faults, and where each is tested that is not tested here."""

import re
from collections.abc import Iterable

ALL = range(1, 88)
_NAME = re.compile(r"::test_((?:\d+_)+)")

# Cases that other suites have, because what they inject is a fake driver, a browser, or a text.
ELSEWHERE: dict[int, str] = {
    54: "tests/test_report_html.py::test_hostile_names_ask_for_nothing_run_nothing_and_stay_words",
    63: "tests/test_probes.py::test_a_box_without_a_driver_says_so",
    64: "tests/test_sampler.py::test_nvml_that_does_not_start_is_one_record_with_the_reason",
    65: "tests/test_probes.py::test_a_field_that_is_not_told_is_left_out_with_the_reason",
    66: "tests/test_sampler.py::test_a_gpu_lost_in_the_middle_is_one_record_and_the_other_goes_on",
    67: "tests/test_sampler.py::test_nvml_that_hangs_costs_the_readings_and_neither_samples_nor_the_lifeline",
    68: "tests/test_sampler.py::test_nvml_that_crashes_costs_two_samplers_and_is_then_left_alone",
    69: "tests/test_sampler.py::test_an_error_of_a_gpu_is_a_record",
    70: "tests/test_sampler.py::test_a_slice_is_found_with_its_gpu",
    71: "tests/test_probes.py::test_in_a_container_no_pid_is_believed_even_if_it_is_one_of_ours",
    72: "tests/test_hints.py::test_a_failure_comes_with_what_to_do",
    73: "tests/test_probes.py::test_the_wrong_pynvml_is_refused",
    84: "tests/test_scrub.py::test_no_secret_of_the_environment_or_the_command_line_is_exported",
}


def numbers_of(test: str) -> set[int]:
    """Return the numbers of the cases that a test covers."""
    numbers = set()
    match = _NAME.search(test)
    if match:
        numbers = {int(number) for number in match[1].split("_") if number}
    for number, name in ELSEWHERE.items():
        if test.startswith(name):
            numbers.add(number)
    return numbers


def describe_skipped(ran: Iterable[str], skipped: Iterable[tuple[str, str]]) -> str:
    """Return a line about the cases with a skipped test, and the reasons; empty if there is none.

    `ran` are tests; `skipped` are tests with the reason.
    """
    tested: set[int] = set()
    for test in ran:
        tested |= numbers_of(test)
    reasons = {}
    for test, reason in skipped:
        for number in numbers_of(test):
            reasons[number] = reason
    if not reasons:
        return ""
    wholly = sorted(reasons.keys() - tested)
    partly = sorted(reasons.keys() & tested)
    cases = [f"{number} ({reasons[number]})" for number in wholly]
    cases += [f"{number} in part ({reasons[number]})" for number in partly]
    return f"faults: {len(wholly)} of {len(ALL)} cases skipped: {', '.join(cases)}"
