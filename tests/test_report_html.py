"""The HTML report: complete without scripts, right in its charts, inert whatever a run is called. A real browser judges."""

import http.server
import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.advice_aids import make_raced_run
from tests.made_runs import finished, make_run, started
from tests.report_aids import ALL, Elements, hostile_run, in_chromium, open_page, recorded
from tuilab.record import events
from tuilab.record.events import Identity
from tuilab.reports.formats import html
from tuilab.reports.opening import boxes_of, opening_of
from tuilab.reports.pages import claim_row
from tuilab.reports.reported_run import read_subject
from tuilab.runs import notes

_ONE = events.Measured(numbers=[1.0])


@pytest.fixture
def visitors() -> Iterator[tuple[int, list[str]]]:
    """A server that notes what is asked of it: its port and the paths."""
    asked: list[str] = []

    class Note(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Note)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, asked
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.first(4)
def test_every_recorded_run_has_a_report_below_the_limit_that_says_what_it_claimed(
    name: str,
) -> None:
    subject = recorded(name)

    page = html.render([subject])

    elements = Elements(page)
    assert len(page.encode()) < 300_000
    for claim in subject.summary.claims.values():
        assert claim.text in elements.text
        assert claim.verdict is not None and claim.verdict.verdict in elements.text
    assert subject.title in elements.text


def test_it_says_estimate_interval_noise_floor_command_lesson_source_and_environment() -> None:
    text = Elements(html.render([recorded("tour")])).text

    assert "two/one 1.99 [1.92, 2.06] (95 %)" in text
    assert "claimed at least 1.5; noise floor ±3.2 % (copy and one, each against itself)" in text
    assert "tuilab run tour --repeat 6 --headless" in text
    assert "A run with a loss that ends in Inf and NaN" in text
    assert "x = x - rate * 4 * x**3" in text
    assert "2.13.0+cpu" in text
    assert "8 of 72 timed blocks were disturbed, according to the sensors." in text


def test_the_drawing_of_a_claim_shades_the_noise_of_an_arm_of_its_own_and_of_no_other() -> None:
    rows = [claim_row(claim) for claim in recorded("tour").result.claims if claim.claimed]

    bands = {row.estimate.split()[0]: bool(row.interval and row.interval.band) for row in rows}
    assert all("(copy and one, each against itself)" in row.claimed for row in rows)
    assert bands == {"two/one": False, "copy/one": True}
    assert (
        "the band around it is the noise floor, where that is of an arm of the claim"
        in html.render([recorded("tour")])
    )
    assert "the band around it" not in html.render([recorded("crash-in-the-third-repeat")])


def test_a_failed_run_says_what_went_wrong_and_what_is_missing() -> None:
    text = Elements(html.render([recorded("crash-in-the-third-repeat")])).text

    assert "ArmFailed: ended by SIGSEGV" in text
    assert 'File "crash-in-the-third-repeat.py", line 19, in run' in text  # as its author calls it
    assert "Failed: ArmFailed: ended by SIGSEGV." in text
    assert "Not measured: gpu (no NVIDIA driver (libnvidia-ml.so.1 not found))." in text


def test_a_page_keeps_its_size_and_says_what_it_left_out(tmp_path: Path) -> None:
    records: list[events.Event] = [
        events.Logged(s=step, v={f"m{name}": math.sin(step * name) for name in range(40)})
        for step in range(400)
    ]
    records += [events.TextShown(text="words " * 8000, title=str(at)) for at in range(20)]
    claims = [
        events.ClaimMeasured(text=f"claim {at}", got=_ONE, op="equals", want=_ONE)
        for at in range(700)
    ]
    run_dir = make_run(
        tmp_path, started(), *records, *claims, events.StateChanged(state="succeeded")
    )
    (run_dir / "scenario.py").write_text('"""A long one."""\n' + "# nothing\n" * 50_000)

    page = html.render([read_subject(run_dir)])

    assert len(page.encode()) <= 300_000
    assert (
        "claims more: the .json and .xml have them." in page
        and "series without a chart here: m" in page
    )
    assert "characters more: see the .json report" in page


def test_notes_and_tags_stand_below_the_title(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path, started(), events.StateChanged(state="succeeded"))
    notes.add(run_dir, "<b>looks</b> good", ["baseline"])

    text = Elements(html.render([read_subject(run_dir)])).text

    assert "#baseline" in text and "<b>looks</b> good" in text


def test_a_setting_that_follows_stands_with_what_it_won_against_and_what_speaks_against_it(
    tmp_path: Path,
) -> None:
    text = " ".join(
        Elements(
            html.render(
                [
                    make_raced_run(tmp_path, against="slower <b>beside</b> others"),
                    recorded("outliers"),
                ]
            )
        ).text.split()
    )

    assert (
        "OMP_NUM_THREADS=4" in text
        and "Other values relative to it: 1 x4 [" in text
        and "drawback: slower <b>beside</b> others" in text
    )
    assert "export OMP_NUM_THREADS=4" in text


def test_of_many_runs_of_a_scenario_the_newest_stand_side_by_side() -> None:
    text = " ".join(Elements(html.render([recorded("tour") for _ in range(9)])).text.split())

    assert "What holds on this machine" in text and "run 6" in text and "run 7" not in text


@pytest.mark.parametrize(
    ("places", "boxes"),
    [
        # the node and the boot of each run; all have one host name
        (
            [("one", "A"), ("two", "B"), ("", "A"), ("one", "C"), ("", "D")],
            {"box (one)": 3, "box (two)": 1, "box": 1},
        ),
        ([("one", "A"), ("two", "A"), ("", "B")], {"box": 3}),
        ([("one", "A"), ("", "B"), ("one", "C")], {"box": 3}),
        ([("", ""), ("", "B")], {"box": 2}),
    ],
)
def test_nodes_of_one_host_name_are_several_boxes(
    tmp_path: Path, places: list[tuple[str, str]], boxes: dict[str, int]
) -> None:
    subjects = [
        read_subject(
            finished(
                tmp_path,
                {"a": "SUPPORTED"},
                end=f"{at:06}",
                node=node,
                supervisor=Identity("box", boot, 1, 1),
            )
        )
        for at, (node, boot) in enumerate(places)
    ]

    assert {name: len(group) for name, group in boxes_of(subjects).items()} == boxes
    opening = opening_of(subjects)
    assert opening.host == ", ".join(boxes) and opening.title.endswith("machines") == (
        len(boxes) > 1
    )


def test_no_address_leads_out_of_the_page() -> None:
    page = html.render([recorded("tour"), recorded("outliers")])

    elements = Elements(page)
    addresses = [
        has[name]
        for _, has in elements.found
        for name in ("src", "href", "srcset", "action", "data")
        if name in has
    ]
    assert [address for address in addresses if not address.startswith(("data:image/", "#"))] == []
    assert "url(" not in page and "@import" not in page


@pytest.mark.parametrize(("count", "is_open"), [(2, True), (20, False)])
def test_many_runs_are_folded_in_the_contents_so_that_a_page_begins_with_what_was_found(
    count: int, is_open: bool
) -> None:
    runs = [recorded("outliers"), *[recorded("two-repeats")] * (count - 1)]

    assert (
        f'<details class="whole"{" open" * is_open}><summary>The {count} runs</summary>'
        in html.render(runs)
    )


@in_chromium
def test_the_charts_in_the_browser_have_the_points_that_were_logged(tmp_path: Path) -> None:
    subject = recorded("tour")
    (page := tmp_path / "tour.html").write_text(html.render([subject]))

    curves = Elements(open_page(page, "--dump-dom")).of("g", class_="curve")

    careful, bold = curves[0], curves[1]
    series = subject.summary.series["loss", "careful", "worker-0"]
    assert [int(step) for step in careful["data-x"].split()] == series.steps
    assert [float(value) for value in careful["data-low"].split()] == pytest.approx(
        series.lows, rel=1e-5
    )
    bads = [pair.split(":") for pair in bold["data-bad"].split()]
    expected = subject.summary.series["loss", "bold", "worker-0"].bad
    assert [(int(at), what) for at, what in bads] == [
        (bad.step, "nan" if math.isnan(bad.value) else "inf") for bad in expected
    ]
    assert len(bads) == 28


@in_chromium
def test_the_value_under_the_pointer_is_shown_where_scripts_run(tmp_path: Path) -> None:
    page = html.render([recorded("tour")])
    page = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page
    )  # or it would refuse the test's own script
    point = """<script>
      const svg = document.querySelector("figure.chart > svg"), box = svg.getBoundingClientRect();
      svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width * 0.5, clientY: box.top + 50}));
    </script>"""
    (file := tmp_path / "tour.html").write_text(page.replace("</body>", point + "</body>"))

    shown = re.search(
        r'<div class="reading"[^>]*>([^<]*)',
        open_page(file, "--dump-dom", "--window-size=1200,900"),
    )

    assert shown is not None
    assert shown[1].splitlines()[0] == "step 14"
    assert "B bold nan" in shown[1]


@in_chromium
def test_hostile_names_ask_for_nothing_run_nothing_and_stay_words(
    tmp_path: Path, visitors: tuple[int, list[str]]
) -> None:
    port, asked = visitors
    away = f"http://127.0.0.1:{port}"
    text = (
        f"</style></script></title></pre>\"'><script src={away}/s></script><script>document.title='owned'</script>"
        f"<img src={away}/i onerror=\"document.title='owned'\"><svg onload=alert(1)><link rel=stylesheet href={away}/c>"
        f"<meta http-equiv=refresh content='0;url={away}/m'><iframe src={away}/f></iframe>"
        f'<a href="javascript:alert(1)">x</a>{{{{ 7*7 }}}}{{% raw %}}![x]({away}/md)<base href={away}/>'
    )
    runs = [read_subject(hostile_run(tmp_path / at, text)) for at in ("one", "two")]
    for at, subjects in enumerate((runs[:1], runs, [*runs, recorded("tour")])):
        (page := tmp_path / f"{at}.html").write_text(html.render(subjects))

        dom = open_page(page, "--dump-dom", "--virtual-time-budget=3000")

        elements = Elements(dom)
        assert asked == []
        assert "owned" not in dom.partition("</title>")[0].rpartition("<title>")[2].replace(
            "document.title='owned'", ""
        )
        assert (
            len(elements.of("script")) == 1
            and len(elements.of("style")) == 1
            and len(elements.of("meta")) == 5
        )
        assert elements.of("iframe") == elements.of("base") == []
        assert [link["href"][:19] for link in elements.of("link")] == ["data:image/svg+xml,"]
        assert [
            img for img in elements.of("img") if not img["src"].startswith("data:image/png;base64,")
        ] == []
        assert [
            has for _, has in elements.found if any(name.startswith("on") for name in has)
        ] == []
        assert "{{ 7*7 }}" in elements.text


@in_chromium
def test_it_prints(tmp_path: Path) -> None:
    (page := tmp_path / "tour.html").write_text(html.render([recorded("tour")]))
    paper = tmp_path / "tour.pdf"

    open_page(page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")

    data = paper.read_bytes()
    assert data.startswith(b"%PDF-")
    assert (
        len(re.findall(rb"/Type\s*/Page\b", data)) >= 3
    )  # the closed parts, the source among them, are printed, too


@in_chromium
@pytest.mark.parametrize("width", [500, 1280])  # no window of chromium is narrower
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    page = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>',
        "",
        html.render([recorded("tour"), recorded("tour"), recorded("outliers")]),
    )
    measure = "<script>document.body.dataset.wide = document.documentElement.scrollWidth - innerWidth</script>"
    (file := tmp_path / "tour.html").write_text(page.replace("</body>", measure + "</body>"))

    (body,) = Elements(open_page(file, "--dump-dom", f"--window-size={width},900")).of("body")

    assert int(body["data-wide"]) <= 0


def test_a_report_of_many_runs_stays_below_two_megabytes() -> None:
    subjects = [recorded(name) for name in ALL] * 7

    page = html.render(subjects)

    assert len(subjects) > 56
    assert len(page.encode()) < 2_000_000
