"""A process that ends early sends nothing: trackers and uploads are switched off when they are loaded."""

import textwrap
from pathlib import Path

import pytest

from tests.commands.treated_script import Treat

pytestmark = pytest.mark.real_torch
# What the parts of huggingface_hub that matter here look like: `api` is an instance, and functions
# of the module are its methods.
HUB = """
import sent
class RepoUrl(str):
    @property
    def repo_id(self): return self.rpartition("co/")[2]
class CommitInfo:
    def __init__(self, commit_url, commit_message, commit_description, oid): self.commit_url = commit_url
class HfApi:
    def create_repo(self, repo_id, *, exist_ok=False): sent.calls.append("create_repo")
    def create_commit(self, repo_id, operations, *, commit_message): sent.calls.append("create_commit")
    def delete_repo(self, repo_id): sent.calls.append("delete_repo")
    def upload_file(self, *, path_or_fileobj, repo_id, run_as_future=False): sent.calls.append("upload_file")
    def upload_folder(self, *, repo_id, folder_path): return self.create_commit(repo_id, [], commit_message="")
    def hf_hub_download(self, repo_id, filename): return "downloaded " + filename
api = HfApi()
create_repo = api.create_repo
upload_file = api.upload_file
hf_hub_download = api.hf_hub_download
"""


def write_module(folder: Path, name: str, source: str) -> None:
    """Write a module, and the packages that it is in, next to the script."""
    path = folder.joinpath(*name.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent != folder:
        (path.parent / "__init__.py").touch()
    path.write_text(textwrap.dedent(source))
    (folder / "sent.py").write_text("calls = []")


def test_nothing_is_uploaded_to_the_hub_and_downloads_work(treat: Treat, tmp_path: Path) -> None:
    write_module(tmp_path, "huggingface_hub.hf_api", HUB)
    script = """
        import sent
        from huggingface_hub.hf_api import HfApi, create_repo, hf_hub_download, upload_file
        print(create_repo("ada/net", exist_ok=True).repo_id)
        print(HfApi().upload_folder(repo_id="ada/net", folder_path=".").commit_url)
        print(upload_file(path_or_fileobj=b"", repo_id="ada/net", run_as_future=True).result().commit_url)
        print(HfApi().create_commit("ada/net", [], commit_message="").commit_url)
        print(HfApi().delete_repo("ada/net"), hf_hub_download("ada/net", "model.bin"), sent.calls)
        train(DataLoader(data, 16), sgd(), epochs=9)
        """
    treated = treat("", script, steps=4)

    commit = f"https://huggingface.co/ada/net/commit/{'0' * 40}"
    *commits, last = treated.printed[1:]
    assert treated.printed[0] == "ada/net" and commits == [commit] * 3
    assert last == "None downloaded model.bin []"
    assert treated.switched_off == ["nothing is uploaded to the Hugging Face Hub"]
    assert treated.reports == []


def test_process_that_ends_by_itself_uploads_as_always(treat: Treat, tmp_path: Path) -> None:
    write_module(tmp_path, "huggingface_hub.hf_api", HUB)
    script = """
        import sent
        from huggingface_hub.hf_api import create_repo
        create_repo("ada/net")
        print(sent.calls)
        train(DataLoader(data, 16), sgd(), epochs=1)
        """
    treated = treat("fused", script)

    assert treated.printed == ["['create_repo']"] and treated.switched_off == []


def test_mode_of_wandb_in_the_script_is_overruled(treat: Treat, tmp_path: Path) -> None:
    write_module(tmp_path, "wandb", "def init(project=None, mode=None): print(project, mode)")
    script = 'import wandb; wandb.init("net", mode="online")\ntrain(DataLoader(data, 16), sgd())'
    treated = treat("", script, steps=4)

    assert treated.printed == ["net disabled"]
    assert treated.switched_off == ["Weights & Biases logs nothing"]


def test_trackio_and_mlflow_write_into_the_folder_of_the_marks(
    treat: Treat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SPACE_ID", "ada/space")
    trackio = (
        "import os\ndef init(project, space_id=None): print(space_id, os.environ['TRACKIO_DIR'])"
    )
    write_module(tmp_path, "trackio", trackio)
    write_module(tmp_path, "mlflow", "def set_tracking_uri(uri): print(uri)")
    script = """
        import os, mlflow, trackio
        trackio.init("net", space_id="ada/space")
        mlflow.set_tracking_uri("https://example.org")
        print(os.environ.get("TRACKIO_SPACE_ID"))
        train(DataLoader(data, 16), sgd())
        """
    treated = treat("", script, steps=4)

    marks = f"{tmp_path}/marks"
    assert treated.printed == [
        f"file://{marks}/mlflow",  # when it is loaded
        f"None {marks}/trackio",
        f"file://{marks}/mlflow",  # instead of the server that the script names
        "None",
    ]
    assert len(treated.switched_off) == 2


def test_library_that_looks_otherwise_is_named(treat: Treat, tmp_path: Path) -> None:
    write_module(tmp_path, "wandb", "version = 99")
    treated = treat("", "import wandb\ntrain(DataLoader(data, 16), sgd())", steps=4)

    (words,) = treated.switched_off
    assert words.startswith("wandb was not switched off: AttributeError(")


def test_module_that_raises_at_import_raises_into_the_script(treat: Treat, tmp_path: Path) -> None:
    write_module(tmp_path, "wandb", "raise ImportError('not today')")
    script = """
        try: import wandb
        except ImportError as problem: print(problem)
        train(DataLoader(data, 16), sgd())
        """
    treated = treat("", script, steps=4)

    assert treated.printed == ["not today"] and treated.switched_off == []
