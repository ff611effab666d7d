"""What the documents of `--json` share: one name for one thing."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from tuilab.record.verdicts import Verdict

Number = float | Literal["nan", "inf", "-inf"]
Maybe = Number | None
Seconds = Annotated[Maybe, Meta(description="seconds since 1970")]
ExitCode = Annotated[int, Meta(description="of the command")]
Key = Annotated[str | None, Meta(description="of a claim; null where it has none")]
Path = Annotated[str, Meta(description="of the folder or file, absolute")]
Counts = dict[str, int]


class Run(TypedDict):
    run: Annotated[str, Meta(description="its id")]
    path: Path


class Note(TypedDict):
    wall_s: Seconds
    text: str


class Claim(TypedDict):
    key: Key
    text: str


class Judged(Claim):
    verdict: Annotated[Verdict | None, Meta(description="null: not judged")]


class Gpu(TypedDict):
    uuid: str
    name: str
