"""The types that several documents of `--json` share."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from tuilab.record.verdicts import Verdict

Number = float | Literal["nan", "inf", "-inf"]
Maybe = Number | None
Seconds = Annotated[Maybe, Meta(description="seconds since 1970")]
ExitCode = Annotated[int, Meta(description="exit code of the command")]
Key = Annotated[str | None, Meta(description="key of the claim; null: it has no key")]
Path = Annotated[str, Meta(description="absolute path")]
Counts = dict[str, int]


class Run(TypedDict):
    run: str
    """id of the run"""
    path: Path


class Note(TypedDict):
    wall_s: Seconds
    text: str


class DescribedClaim(TypedDict):
    key: Key
    text: str


class Judged(DescribedClaim):
    verdict: Verdict | None
    """verdict; null: not judged"""


class NamedGpu(TypedDict):
    uuid: str
    name: str
