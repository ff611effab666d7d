"""The HTML report in a real browser: charts are looked at closely, by keyboard too; paper and phones have all of it."""

import html as escaping
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import make_run, started
from tests.report_aids import ALL, Elements, in_chromium, open_page, recorded
from tuilab.record import events
from tuilab.reports.formats import html
from tuilab.reports.reported_run import ReportedRun, read_subject

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_FIGURE = 'const figure = document.querySelector("figure.chart");'


def told(page: str, script: str, folder: Path, *flags: str) -> Any:
    """Return what a script says of a page that is open in the browser."""
    page = _POLICY.sub("", page)  # or it would refuse the test's own script
    asked = (
        f"<script>document.body.dataset.told = JSON.stringify((() => {{ {script} }})())</script>"
    )
    (file := folder / "page.html").write_text(page.replace("</body>", asked + "</body>"))
    (body,) = Elements(open_page(file, "--dump-dom", "--window-size=1280,900", *flags)).of("body")
    return json.loads(body["data-told"])


def in_frame(page: str, width: int, script: str, folder: Path) -> Any:
    """Return what a script says of `inside`, a document that is as wide as a phone: no window of chromium is."""
    source = escaping.escape(_POLICY.sub("", page), quote=True)
    outer = f'<!doctype html><body><iframe width="{width}" height="800" style="border:0" srcdoc="{source}"></iframe></body>'
    asked = f"const inside = document.querySelector('iframe').contentDocument; {script}"
    run = f"<script>onload = () => {{ document.body.dataset.told = JSON.stringify((() => {{ {asked} }})()) }}</script>"
    (file := folder / "frame.html").write_text(outer.replace("</body>", run + "</body>"))
    body = Elements(open_page(file, "--dump-dom", "--virtual-time-budget=3000")).of("body")[0]
    return json.loads(body["data-told"])


def pages(page: str, folder: Path) -> int:
    """Return how many pages of paper a report takes."""
    (file := folder / "paper.html").write_text(page)
    open_page(file, f"--print-to-pdf={folder / 'paper.pdf'}", "--no-pdf-header-footer")
    return len(re.findall(rb"/Type\s*/Page\b", (folder / "paper.pdf").read_bytes()))


def curves(root: Path) -> ReportedRun:
    """Return a run of two arms over a hundred steps, one of them a hundred times as high."""
    logged = [
        events.Logged(s=step, v={"loss": scale * (1 + step)}, a=arm)
        for step in range(100)
        for arm, scale in (("low", 1.0), ("high", 100.0))
    ]
    return read_subject(
        make_run(
            root,
            started(),
            events.AxesNamed(metric="loss", log=""),
            *logged,
            events.StateChanged(state="succeeded"),
        )
    )


def test_the_script_is_short() -> None:
    script = html.render([recorded("tour")]).rpartition("<script>")[2].partition("</script>")[0]

    assert len(script.encode()) <= 8192


def test_nothing_in_the_page_moves() -> None:
    page = html.render([recorded("tour")])

    assert [
        word
        for word in ("transition", "animation", "scroll-behavior", "@keyframes")
        if word in page
    ] == []


@in_chromium
def test_values_are_read_by_keyboard_and_spoken(tmp_path: Path) -> None:
    script = (
        _FIGURE
        + """
      const slider = figure.querySelector("input");
      slider.focus(); slider.value = 42; slider.dispatchEvent(new Event("input"));
      return [slider.max, slider.ariaValueText, figure.querySelector(".reading").textContent];
    """
    )

    most, spoken, shown = told(html.render([curves(tmp_path)]), script, tmp_path)

    assert most == "99"
    assert spoken == shown == "step 42\nA low 43\nB high 4300"


@in_chromium
def test_in_a_gap_nothing_is_read_and_among_points_that_are_no_numbers_the_last_of_them(
    tmp_path: Path,
) -> None:
    logged = [events.Logged(s=step, v={"loss": float(step)}, a="all") for step in range(6)]
    logged += [
        events.Logged(s=step, v={"loss": math.nan if step == 2 else 7.0}, a="some")
        for step in (0, 1, 2, 5)
    ]
    used = {"memory_used_bytes": 4096.0, "memory_tree_bytes": 1.0}
    sampled = [
        events.Sampled(
            processes=count, threads=1, cpu_percent=1.0, rss_bytes=2048, gpus={"GPU-a": used}
        )
        for count in (1, 0, 1, 1)
    ]
    records = [started(), events.GpuFound(uuid="GPU-a", index=0, name="H100"), *logged, *sampled]
    script = """
      const read = (figure, index) => {
        const slider = figure.querySelector("input");
        slider.focus(); slider.value = index; slider.dispatchEvent(new Event("input"));
        return slider.ariaValueText.split("\\n").slice(1);
      };
      const [loss, memory] = document.querySelectorAll("figure.chart");
      return [read(loss, 3), read(loss, 5), read(memory, 1), read(memory, 2)];
    """

    found = told(
        html.render(
            [read_subject(make_run(tmp_path, *records, events.StateChanged(state="succeeded")))]
        ),
        script,
        tmp_path,
    )

    assert found[:2] == [["A all 3", "B some nan"], ["A all 5", "B some 7"]]
    assert [rows[-1] for rows in found[2:]] == ["C processes n/a", "C processes 2 KiB"]


@in_chromium
def test_a_part_of_a_chart_is_shown_large_and_the_whole_comes_back_as_it_was(
    tmp_path: Path,
) -> None:
    script = (
        _FIGURE
        + """
      const svg = figure.querySelector("svg[data-frame]"), was = svg.innerHTML;
      const [, closer, farther] = figure.querySelectorAll(".tools button");
      const labels = () => [...svg.querySelectorAll(".ticks .mid")].map((text) => text.textContent);
      closer.click(); closer.click();
      const near = labels();
      farther.click(); farther.click();
      figure.querySelector("input").blur();
      return [near, svg.innerHTML === was, svg.classList.value];
    """
    )

    near, is_as_before, kind = told(html.render([curves(tmp_path)]), script, tmp_path)

    assert near == ["40", "45", "50", "55", "60"]
    assert (is_as_before, kind) == (True, "")


@in_chromium
def test_the_scale_is_switched_and_arms_are_hidden(tmp_path: Path) -> None:
    script = (
        _FIGURE
        + """
      const labels = () => [...figure.querySelectorAll(".ticks .end")].map((text) => text.textContent);
      const [log] = figure.querySelectorAll(".tools button"), [, high] = figure.querySelectorAll(".legend button");
      log.click();
      const logarithmic = [log.ariaPressed, labels()];
      log.click(); high.click();
      return [logarithmic, high.ariaPressed, labels(), [...figure.querySelectorAll(".curve")].map((g) => g.innerHTML !== "")];
    """
    )

    logarithmic, pressed, alone, drawn = told(html.render([curves(tmp_path)]), script, tmp_path)

    assert logarithmic == ["true", ["1", "10", "100", "1000", "10000"]]
    assert (pressed, alone, drawn) == ("false", ["20", "40", "60", "80", "100"], [True, False])


@in_chromium
@pytest.mark.parametrize("width", [1280, 800])
def test_the_letters_of_charts_have_one_size_whether_a_chart_is_alone_in_a_row_or_not(
    tmp_path: Path, width: int
) -> None:
    sizes = "return [...document.querySelectorAll('figure > svg')].map(one => one.getScreenCTM().a.toFixed(2))"

    alone, many = (
        told(html.render([one]), sizes, tmp_path, f"--window-size={width},900")
        for one in (curves(tmp_path), recorded("tour"))
    )
    assert len(alone) == 1 and len(many) > 3
    assert {*alone, *many} == {"0.86"}


@in_chromium
@pytest.mark.parametrize("name", ["tour", "not-a-number"])
def test_without_the_script_every_chart_is_drawn(tmp_path: Path, name: str) -> None:
    page = re.sub(r"<script>.*?</script>", "", html.render([recorded(name)]), flags=re.S)

    drawn = told(
        page,
        'return [...document.querySelectorAll("figure.chart .line")].filter((path) => path.getTotalLength() > 0).length',
        tmp_path,
    )

    assert isinstance(drawn, int) and drawn >= 2


@in_chromium
def test_on_a_phone_nothing_is_wider_than_the_page_nor_cut_off(tmp_path: Path) -> None:
    page = html.render([recorded("tour"), recorded("tour"), recorded("outliers")])
    script = """
      const wide = inside.documentElement.scrollWidth - 390;
      const told = [...inside.querySelectorAll(".verdict, h1, h2, h3, p, li")];
      const cut = told.filter((e) => e.getBoundingClientRect().right > 391);
      return [wide, cut.map((e) => e.textContent)];
    """

    assert in_frame(page, 390, script, tmp_path) == [0, []]


@in_chromium
def test_every_part_that_scrolls_can_be_reached_by_keyboard(tmp_path: Path) -> None:
    page = html.render([recorded("tour"), recorded("tour"), recorded("crash-in-the-third-repeat")])
    script = """
      for (const details of inside.querySelectorAll("details")) details.open = true;
      const wide = [...inside.querySelectorAll("*")].filter((e) => e.scrollWidth > e.clientWidth);
      const scrolls = wide.filter((e) => getComputedStyle(e).overflowX === "auto");
      return [scrolls.length > 0, scrolls.filter((e) => e.tabIndex < 0).map((e) => e.outerHTML.slice(0, 80))];
    """

    assert in_frame(page, 390, script, tmp_path) == [True, []]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_report_has_one_first_heading_and_no_empty_one(count: int) -> None:
    page = html.render([recorded("tour"), recorded("outliers"), recorded("tour")][:count])

    assert len(Elements(page).of("h1")) == 1
    assert re.findall(r"<(h\d|th|figcaption)[^>]*>\s*</\1>", page) == []
    assert all("scope" in has for has in Elements(page).of("th"))
    leads = set(re.findall(r'href="#([^"]+)"', page))
    assert leads <= set(re.findall(r' id="([^"]+)"', page)) and bool(leads) == (count > 1)


@in_chromium
def test_seven_claims_are_one_page_of_paper(tmp_path: Path) -> None:
    exact = events.Measured(numbers=[1.0])
    claims = [
        events.ClaimMeasured(
            text=f"claim {at} says what it says in some words", got=exact, op="equals", want=exact
        )
        for at in range(7)
    ]
    page = html.render(
        [
            read_subject(
                make_run(tmp_path, started(), *claims, events.StateChanged(state="succeeded"))
            )
        ]
    )
    begin, _, rest = page.partition("<h2>")

    assert pages(f"{begin}</section></main></body></html>", tmp_path) == 1 and rest


@in_chromium
def test_on_paper_a_report_of_many_is_a_document(tmp_path: Path) -> None:
    page = html.render([recorded(name) for name in ALL])
    whole = _POLICY.sub("", page).replace(".screen, .folded, .values, ", "")

    assert len(ALL) > 7 and whole != page
    assert pages(page, tmp_path) < min(pages(whole, tmp_path), 2 * len(ALL))


def test_a_very_long_claim_is_begun_and_the_whole_is_a_click_away(tmp_path: Path) -> None:
    text = "a claim of many words " * 150
    exact = events.Measured(numbers=[1.0])
    claimed = events.ClaimMeasured(text=text, got=exact, op="equals", want=exact)
    shown = events.TextShown(text="x", title=" ")
    page = html.render(
        [
            read_subject(
                make_run(
                    tmp_path, started(), claimed, shown, events.StateChanged(state="succeeded")
                )
            )
        ]
    )

    assert f"<summary>all {len(text)} characters</summary>{text}</details>" in page
    assert "<h3> </h3>" not in page and "<h3></h3>" not in page
