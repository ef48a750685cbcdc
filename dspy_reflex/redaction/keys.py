"""Keys and tokens that can be told by their shape: what providers put before them, and how long they are.

Prefixes and lengths are those that the providers document or that their own secret scanners look for.
"""

from __future__ import annotations

import re

from dspy_reflex.redaction.kind import Kind

# Where a short prefix may begin: not inside a word, but after an escaped line end or the end of a colour code.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=[\d;\[]m))"
_PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_GITLAB = ("pat", "dt", "rt", "rtr", "ptt", "cbt", "ft", "imt", "soat", "agent")
_SLACK = "abcdeoprs"
_SERVICES = (
    "gsk_", "xai-", "pplx-", "tvly-", "nvapi-", "lsv2_pt_", "lsv2_sk_", "pcsk_", "dop_v1_", "doo_v1_", "dor_v1_",
    "ntn_", "lin_api_", "shpat_", "shpca_", "shppa_", "shpss_", "glsa_", "NRAK-", "sbp_",
)  # fmt: skip
"""Groq, xAI, Perplexity, Tavily, NVIDIA, LangSmith, Pinecone, DigitalOcean, Notion, Linear, Shopify, Grafana,
New Relic, Supabase."""

KEYS = (
    # Without its end mark, all that follows goes: half a key is a key as well.
    Kind(
        "private_key",
        rf"-----BEGIN {_PEM}(?:[\s\"'+,>|]|\\[nrt\"'\\])*+(?=[A-Za-z0-9+/]{{16}}|[A-Z][A-Za-z-]{{2,20}}: )"
        rf"(?:[^-]|-(?!----))*+(?:-----END {_PEM})?",
        literals=("PRIVATE KEY",),
    ),
    # A password may hold an at sign; a port and a path with one are not a password.
    Kind(
        "url_password",
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}:\\?/\\?/"
        r"(?P<secret>[^\s:@/?#\"'<>\\\[]{0,128}+:[^\s/?#\"'<>\\]{1,256}|[A-Za-z0-9_-]{20,256}+)@",
        literals=("@",),
    ),
    Kind("anthropic_key", r"sk-ant-[\w-]{20,}+", literals=("sk-",)),
    Kind(
        "openai_key",
        rf"{_START}sk-(?:(?:proj|svcacct|admin)-[\w-]{{20,}}+|[A-Za-z0-9]{{20,}}+)",
        literals=("sk-",),
    ),
    Kind("api_key", rf"{_START}sk-[a-z]{{2,8}}-(?=[\w-]{{0,40}}\d)[\w-]{{24,}}+", literals=("sk-",)),
    Kind(
        "github_token",
        r"(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_\w{22,}+)(?:[._-][\w-]{10,}+)*+",
        ends=("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    Kind(
        "gitlab_token",
        rf"gl(?:{'|'.join(_GITLAB)})-[\w-]{{20,}}+(?:\.[\w-]{{2,}}+)*+",
        ends=tuple(f"gl{one}-" for one in _GITLAB),
    ),
    Kind(
        "slack_token",
        rf"xox[{_SLACK}]-[\w-]{{10,}}+|xapp-\d-[\w-]{{10,}}+",
        ends=(*(f"xox{one}-" for one in _SLACK), "xapp-"),
    ),
    Kind(
        "webhook_url",
        r"hooks\.slack\.com\\?/services\\?/[\w/\\]{20,}+"
        r"|discord(?:app)?\.com\\?/api\\?/webhooks\\?/\d{1,30}\\?/[\w-]{60,}+",
        literals=("hooks",),
    ),
    Kind(
        "stripe_key",
        r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/]{24,}+=*",
        ends=("k_live_", "k_test_", "whsec_"),
    ),
    Kind("google_key", r"AIza[\w-]{35}|GOCSPX-[\w-]{28}", literals=("AIza",), ends=("GOCSPX-",)),
    Kind(
        "huggingface_token",
        rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+",
        literals=("hf_",),
        ends=("api_org_",),
    ),
    Kind("npm_token", r"npm_[A-Za-z0-9]{36}", ends=("npm_",)),
    Kind("pypi_token", r"pypi-A[\w-]{50,}+", ends=("pypi-",)),
    Kind("sendgrid_key", r"SG\.[\w-]{16,32}+\.[\w-]{32,64}+", literals=("SG.",)),
    Kind("azure_key", r"[\w~.-]{3}\dQ~[\w~.-]{31,34}", literals=("Q~",)),
    Kind(
        "api_key",
        rf"{_START}(?:{'|'.join(_SERVICES)})[A-Za-z0-9_=-]{{24,}}+",
        ends=tuple(re.split(r"(?<=[_-])", one)[0] for one in _SERVICES),
    ),
    # From here on those that must not stand inside a word: what they touch has to be gone before.
    Kind("aws_key", r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])", literals=("AKIA", "ASIA")),
    Kind("twilio_key", rf"{_START}SK[0-9a-f]{{32,}}+", literals=("SK",)),
    Kind("telegram_token", r"(?<!\d)\d{6,12}:AA[\w-]{32,}+", literals=(":AA",)),
    # Header, payload and signature (RFC 7519), or the five parts of an encrypted one.
    Kind(
        "jwt",
        r"(?:(?<![\w-])|(?<=\\[nrtbf])|(?<=[\d;\[]m))eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)*+",
        literals=("eyJ",),
    ),
)
"""What unlocks something wherever it stands."""
