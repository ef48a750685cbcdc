"""Send a published folder to the Hugging Face hub, with the hub's own client."""

from __future__ import annotations

from typing import Any

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.publishing.folder import Published

REPO_TYPE = "dataset"
ADVICE = {
    401: "the hub does not know the token; log in with `hf auth login`, or set HF_TOKEN",
    403: "the token may not write there; give one with write access, or a name of your own",
}
"""HTTP status to what it means here."""


def check_name(repo: str) -> None:
    """Look at a name before anything is done for it.

    Raises:
        DatasetError: It is not `OWNER/NAME` as the hub takes it.
        MissingExtraError: The hub's client is not installed.
    """
    try:
        from huggingface_hub.utils import HFValidationError, validate_repo_id
    except ImportError:
        raise MissingExtraError("pushing a data set", "compile") from None
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise DatasetError(f"{repo!r} is no name on the hub ({error}); give OWNER/NAME") from None
    if "/" not in repo:
        raise DatasetError(f"{repo!r} has no owner; give OWNER/NAME")


def push(published: Published, repo: str, *, public: bool) -> str:
    """Send the files in one commit; the repository is made if it is not there. Its address is returned.

    What else lies in the folder, or in the repository, is left alone.

    Args:
        published: What to send.
        repo: `OWNER/NAME`.
        public: Whether everyone may read it. If not, nothing is sent to a repository that everyone can read.

    Raises:
        DatasetError: The hub refuses or cannot be reached.
        MissingExtraError: The hub's client is not installed.
    """
    try:
        import httpx
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtraError("pushing a data set", "compile") from None
    api: Any = HfApi()
    try:
        url = str(api.create_repo(repo, repo_type=REPO_TYPE, private=not public, exist_ok=True))
        # A repository that was there already keeps its visibility, whatever was asked for.
        if not public and not api.repo_info(repo, repo_type=REPO_TYPE).private:
            raise DatasetError(f"{repo}: is there already, and public; nothing was sent, give --public or another name")
        api.upload_folder(
            repo_id=repo,
            repo_type=REPO_TYPE,
            folder_path=published.folder,
            allow_patterns=list(published.files),
            commit_message=f"Version {published.version}",
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise DatasetError(f"{repo}: {_reason(error)}") from None
    return url


def _reason(error: Exception) -> str:
    """What went wrong and what to do, in one line, without a request's headers."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in ADVICE:
        return ADVICE[status]
    said = " ".join(str(getattr(error, "server_message", None) or error).split()) or type(error).__name__
    if status:
        return f"the hub answered HTTP {status} ({said}); nothing was committed, try again"
    return f"the hub was not reached, or did not take it ({said}); nothing was committed"
