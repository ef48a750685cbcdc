"""Secrets that unlock nothing, and texts that only look as if they held one.

Every secret is put together when this module is imported, of random characters from a fixed seed: no line of it is one,
so no scanner of this repository, or of the place it is pushed to, can take it for a real one.
"""

from __future__ import annotations

import base64
import json
import random
from dataclasses import dataclass

_RANDOM = random.Random(20261121)
HEX, DIGITS, UPPER, LOWER = "0123456789abcdef", "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
ALNUM = UPPER + LOWER + DIGITS
URL_SAFE = ALNUM + "-_"


@dataclass(frozen=True)
class Planted:
    """A text as a log has it, and the secret in it."""

    kind: str
    """The mark that should stand in its place; several may be right, with `|` between them."""
    text: str
    secret: str
    """What must be gone."""


def _of(alphabet: str, length: int) -> str:
    return "".join(_RANDOM.choices(alphabet, k=length))


def _word(alphabet: str, length: int) -> str:
    """Random characters with a digit among them and no dash at either end."""
    return "a" + _of(alphabet, length - 3) + "7b"


def _planted(kind: str, text: str, *parts: str) -> Planted:
    """The parts put together, where the text says `%s`."""
    secret = "".join(parts)
    return Planted(kind, text.replace("%s", secret), secret)


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _jwt() -> str:
    return ".".join(
        (_encoded({"alg": "HS256", "typ": "JWT"}), _encoded({"sub": "4711", "name": "J"}), _of(URL_SAFE, 43))
    )


def _pem(kind: str, end: bool = True) -> str:
    body = "\n".join(_of(ALNUM + "+/", 64) for _ in range(4))
    return (
        f"-----BEGIN {kind}PRIVATE" + f" KEY-----\n{body}\n" + (f"-----END {kind}PRIVATE" + " KEY-----" if end else "")
    )


def _card(prefix: str, length: int) -> str:
    """A number with the right check digit (Luhn)."""
    number = prefix + _of(DIGITS, length - len(prefix) - 1)
    total = sum(
        sum(divmod(int(digit) * 2, 10)) if i % 2 == 0 else int(digit) for i, digit in enumerate(reversed(number))
    )
    return number + str(-total % 10)


def _spaced(number: str, *groups: int, by: str = " ") -> str:
    parts, at = [], 0
    for size in groups:
        parts.append(number[at : at + size])
        at += size
    return by.join(parts)


def _iban(country: str, account: str) -> str:
    """An account with the right check digits (ISO 7064)."""
    digits = "".join(str(int(char, 36)) for char in f"{account}{country}00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


def _keys() -> list[Planted]:
    """What providers give out."""
    return [
        _planted("anthropic_key", "anthropic.AuthenticationError: 401 invalid x-api-key %s", "sk-", "ant-api03-", _word(URL_SAFE, 95)),
        _planted("anthropic_key", '{"env": {"CLAUDE": "%s"}}', "sk-", "ant-admin01-", _word(URL_SAFE, 90)),
        _planted("openai_key", "Incorrect API key provided: %s. You can find your key", "sk", "-", _of(ALNUM, 48)),
        _planted("openai_key", "export OPENAI=%s", "sk-", "proj-", _word(URL_SAFE, 120)),
        _planted("openai_key", "using %s for the batch", "sk-", "svcacct-", _word(URL_SAFE, 60)),
        _planted("api_key", "openrouter refused %s", "sk-", "or-v1-", _of(HEX, 64)),
        _planted("aws_key", "aws: The AWS Access Key Id %s does not exist in our records", "AK", "IA", _of(UPPER + "234567", 16)),
        _planted("aws_key", "X-Amz-Credential=%s/20261120/eu-west-1/s3/aws4_request", "AS", "IA", _of(UPPER + "234567", 16)),
        _planted("secret", "AWS_SECRET_ACCESS_KEY=%s", _of(ALNUM + "+/", 38), "7b"),
        _planted("secret", "aws_secret_access_key = %s\nregion = eu-west-1", _of(ALNUM + "+/", 38), "7b"),
        _planted("github_token", "git clone failed with %s", "gh", "p_", _of(ALNUM, 36)),
        _planted("github_token", "remote: token %s is expired", "gh", "o_", _of(ALNUM, 36)),
        _planted("github_token", "::add-mask::%s", "gh", "s_", _of(ALNUM, 36)),
        _planted("github_token", "auth %s", "gh", "r_", _of(ALNUM, 76)),
        _planted("github_token", "login with %s failed", "github", "_pat_", _of(ALNUM, 22), "_", _of(ALNUM, 59)),
        _planted("gitlab_token", "remote: HTTP Basic: Access denied for %s", "gl", "pat-", _word(URL_SAFE, 20)),
        _planted("gitlab_token", "runner registered as %s", "gl", "rt-", _word(URL_SAFE, 20)),
        _planted("slack_token", "slack_sdk: invalid_auth (%s)", "xo", "xb-", _of(DIGITS, 12), "-", _of(DIGITS, 13), "-", _of(ALNUM, 24)),
        _planted("slack_token", "token revoked: %s", "xo", "xp-", _of(DIGITS, 12), "-", _of(HEX, 32)),
        _planted("slack_token", "socket mode %s", "xa", "pp-1-A", _of(UPPER, 10), "-", _of(DIGITS, 13), "-", _of(HEX, 64)),
        _planted("webhook_url", "POST https://%s 404", "hooks.slack", ".com/services/T", _of(UPPER, 8), "/B", _of(UPPER, 8), "/", _of(ALNUM, 24)),
        _planted("webhook_url", "POST https://%s 401", "discord", ".com/api/webhooks/", _of(DIGITS, 18), "/", _word(URL_SAFE, 68)),
        _planted("stripe_key", "stripe: Invalid API Key provided: %s", "sk_", "live_", _of(ALNUM, 24)),
        _planted("stripe_key", "charge with %s failed", "rk_", "test_", _of(ALNUM, 24)),
        _planted("stripe_key", "signature check with %s", "wh", "sec_", _of(ALNUM, 32)),
        _planted("google_key", "https://maps.googleapis.com/maps/api/geocode/json?key=%s&address=x", "AI", "za", _word(URL_SAFE, 35)),
        _planted("google_key", "client %s", "GOC", "SPX-", _word(URL_SAFE, 28)),
        _planted("huggingface_token", "huggingface_hub: 401 for token %s", "h", "f_", _of(ALNUM, 34)),
        _planted("npm_token", "//registry.npmjs.org/:_authToken=%s", "np", "m_", _of(ALNUM, 36)),
        _planted("pypi_token", "twine upload -u __token__ -p %s dist/*", "py", "pi-AgEIcHlwaS5vcmc", _word(URL_SAFE, 120)),
        _planted("sendgrid_key", "sendgrid 403 with %s", "S", "G.", _word(URL_SAFE, 22), ".", _word(URL_SAFE, 43)),
        _planted("twilio_key", "twilio: Authenticate %s", "S", "K", _of(HEX, 32)),
        _planted("telegram_token", "POST https://api.telegram.org/bot%s/sendMessage 401", _of("123456789", 10), ":A", "A", _word(URL_SAFE, 33)),
        _planted("azure_key", "AADSTS7000215: Invalid client secret %s", _of(ALNUM, 3), "8Q", "~", _word(ALNUM + "_~.-", 34)),
        _planted("secret", "DefaultEndpointsProtocol=https;AccountName=logs;AccountKey=%s;EndpointSuffix=core.windows.net", _of(ALNUM, 84), "7b=="),
        _planted("secret", "https://logs.blob.core.windows.net/c/b.txt?sv=2026-01-01&sig=%s&se=2026-12-01", _of(ALNUM, 40), "7b%3D"),
        _planted("api_key", "groq 401 %s", "gs", "k_", _of(ALNUM, 52)),
        _planted("api_key", "xai says no to %s", "xa", "i-", _of(ALNUM, 80)),
        _planted("api_key", "tavily search with %s", "tv", "ly-dev-", _of(ALNUM, 32)),
        _planted("api_key", "langsmith: %s forbidden", "ls", "v2_pt_", _of(HEX, 32), "_", _of(HEX, 10)),
        _planted("api_key", "doctl auth init -t %s", "do", "p_v1_", _of(HEX, 64)),
        _planted("api_key", "shopify admin %s", "sh", "pat_", _of(HEX, 32)),
    ]  # fmt: skip


def _by_context() -> list[Planted]:
    """What is a secret by what stands around it."""
    return [
        _planted("jwt", "id token %s expired", _jwt()),
        _planted("jwt|authorization", "> Authorization: Bearer %s\n< HTTP/1.1 403", _jwt()),
        _planted("bearer_token|authorization", "headers={'Authorization': 'Bearer %s'}", _word(URL_SAFE, 40)),
        _planted("bearer_token|authorization", 'curl -H "Authorization: Bearer %s" https://api.acme.io', _word(ALNUM, 32)),
        _planted("authorization", "Authorization: Basic %s", base64.b64encode(b"admin:" + b"correct horse 9").decode()),
        _planted("private_key", "loaded key:\n%s\nok", _pem("RSA ")),
        _planted("private_key", "%s", _pem("")),
        _planted("private_key", "ssh: %s", _pem("OPENSSH ")),
        _planted("private_key", "cut off: %s", _pem("EC ", end=False)),
        Planted("private_key", json.dumps({"key": (pem := _pem("RSA "))}), json.dumps(pem)[60:160]),
        _planted("url_password", "could not connect to postgres://app:%s@db.acme.io:5432/prod", "hunter", "2"),
        _planted("url_password", "redis://:%s@cache:6379/0 refused", "s3cr", "et!pw"),
        _planted("url_password", "mongodb+srv://svc:%s@cluster0.mongodb.net/?retryWrites=true", "p4ss", "w0rd"),
        _planted("url_password", "amqp://guest:%s@mq:5672//", "Gu", "est-99"),
        _planted("url_password", "https://ci:%s@git.acme.io/x.git", _of(ALNUM, 20)),
        _planted("password", "password=%s host=db", "hunter", "2"),
        _planted("password", "PGPASSWORD=%s psql -h db", "Tr0ub4", "dor&3"[:4]),
        _planted("password", 'config: {"user": "sa", "password": "%s", "port": 1433}', "correct horse ", "battery"),
        _planted("password", "DB_PASS=%s DB_HOST=db", "hunter", "22"),
        _planted("secret", "Ocp-Apim-Subscription-Key: %s", _of(HEX, 30), "7b"),
        _planted("secret", "PRIVATE-TOKEN: %s", _of(ALNUM, 18), "7b"),
        _planted("secret", "const creds = { secretAccessKey: '%s' }", _of(ALNUM, 38), "7b"),
        _planted("password", "{'db_passwd': '%s'}", "let", "me-in!"),
        _planted("password", "Server=db;User Id=sa;Pwd=%s;Encrypt=true", "Y0u", "Know"),
        _planted("password", "mysql --password %s -u root", "r00t", "!pw"),
        _planted("password", "curl -sS -u admin:%s https://nexus.acme.io/x", "adm1n", "pw"),
        _planted("password", "<server><password>%s</password></server>", "maven", "-4711"),
        _planted("secret", "api_key: '%s'", _of(HEX, 32)),
        _planted("secret", "X-Api-Key: %s", _of(ALNUM, 30), "7b"),
        _planted("secret", "client_secret=%s&grant_type=client_credentials", _of(ALNUM, 30), "7b"),
        _planted("secret", r'body: "{\"access_token\": \"%s\", \"expires_in\": 3600}"', _of(ALNUM, 30), "7b"),
        _planted("secret", "GET /v1/me?access_token=%s HTTP/1.1", _of(ALNUM, 30), "7b"),
        _planted("secret", 'os.environ["SERVICE_TOKEN"] = "%s"', _of(ALNUM, 24), "7b"),
        _planted("secret", "DJANGO_SECRET_KEY = '%s'", _of(ALNUM + "!@#$%^&*(-_=+)", 48), "7b"),
        _planted("cookie", "Cookie: sessionid=%s; theme=dark", _of(ALNUM, 32)),
        _planted("github_token", "\x1b[32m%s\x1b[0m", "gh", "p_", _of(ALNUM, 36)),
        _planted("openai_key", "\x1b[1;31m%s\x1b[0m", "sk", "-", _of(ALNUM, 48)),
        _planted("openai_key", r"first line\n%s\nlast line", "sk", "-", _of(ALNUM, 48)),
    ]  # fmt: skip


def _persons() -> list[Planted]:
    """What names somebody."""
    return [
        _planted("email", "mail to %s bounced", "jane.doe", "@acme-corp.io"),
        _planted("email", "From: Jane <%s>", "j.doe+news", "@mail.acme.co.uk"),
        _planted("email", 'assignee="%s"', "o'hara"[2:], "@uni-bonn.de"),
        _planted("email", "https://app.acme.io/u/%s/edit", "max_m", "@web.de"),
        _planted("phone", "call %s today", "+49 30 ", "9018 2000"),
        _planted("phone", "sms to %s failed", "+14155", "552671"),
        _planted("phone", "tel %s", "+1 (415) ", "867-5309"),
        _planted("phone", "fax %s", "(415) ", "867-5309"),
        _planted("phone", "customer 415%s", "-867", "-5309"),
        _planted("card_number", "card %s declined", _card("4", 16)),
        _planted("card_number", "card %s declined", _spaced(_card("4", 16), 4, 4, 4, 4)),
        _planted("card_number", "pan=%s", _spaced(_card("53", 16), 4, 4, 4, 4, by="-")),
        _planted("card_number", "amex %s", _spaced(_card("37", 15), 4, 6, 5)),
        _planted("card_number", "mc %s exp 11/29", _card("2345", 16)),
        _planted("iban", "pay to %s today", _iban("DE", _of(DIGITS, 18))),
        _planted("iban", "IBAN %s BIC X", _spaced(_iban("DE", _of(DIGITS, 18)), 4, 4, 4, 4, 4, 2)),
        _planted("iban", "from %s", _iban("GB", "NWBK" + _of(DIGITS, 14))),
    ]


SECRETS: tuple[Planted, ...] = (*_keys(), *_by_context(), *_persons())
"""What must be redacted."""

BEYOND_SHAPES: tuple[Planted, ...] = (
    _planted("", "the password is %s, do not tell", "hunter", "2"),
    _planted("", "twilio auth %s", _of(HEX, 32)),
    _planted("", "aws %s", _of(ALNUM + "+/", 40)),
    _planted("", "key in pieces: %s", "gh", "p_", _of(ALNUM, 18), "\u200b", _of(ALNUM, 18)),
    _planted("", "encoded %s", base64.b64encode(b"password=" + b"hunter2").decode()),
    _planted("", "Jane Doe, 4 Mill Lane, Leeds (%s)", "born 1 May ", "1980"),
    _planted("", "mysql -uroot -p%s -h db", "S3cr", "et99"),
    _planted("", '"auth": "%s"', base64.b64encode(b"ci:" + b"hunter2").decode()),
    _planted("", "ring 030 %s", "9018", " 2000"),
)
"""Secrets without a shape or a name of their own: not found, and said so."""

_ULID = "01JDXK9QZ4T7M2V8WYB3C5D6E7"
LOOK_ALIKES: tuple[str, ...] = (
    f"commit {_of(HEX, 40)} by ci",
    f"index {_of(HEX, 7)}..{_of(HEX, 7)} 100644",
    f"sha256:{_of(HEX, 64)}",
    f"md5 {_of(HEX, 32)} does not match",
    f"integrity sha512-{_of(ALNUM, 86)}==",
    "request 123e4567-e89b-42d3-a456-426614174000 timed out",
    "12345678-1234-4123-8123-123456789012",
    f"evt_{_ULID} follows prop_{_ULID}",
    _ULID,
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "objectid 507f1f77bcf86cd799439011",
    "2026-11-20T11:05:40.123456+00:00",
    "2026-11-20 11:05:40,123 ERROR worker-3",
    "2026-11-20 11:05:40 +0100 1732186800",
    '20/Nov/2026:11:05:40 +0000] "GET / HTTP/1.1" 200 5123',
    "epoch 1732186800123 ms, 1732186800123456 us, 1732186800123456789 ns",
    "score 0.8312345678912345, loss 4.111111111111111e-05",
    "version 3.11.7, build 20261121094500, python-3.12.0rc2",
    "numpy==2.3.4 torch@2.9.0 glob@7.2.3",
    "npm WARN deprecated httpkit@v2.0.0 and ui@1.0.0-beta.two",
    "@types/node@20.1.0 and @acme/ui@workspace:*",
    "icon@2x.png and logo@3x.webp are missing",
    "git@github.com:acme/app.git",
    "ssh deploy@10.0.0.12",
    "decorated with @app.route and @pytest.mark.slow",
    "C = A@B.T @ x",
    "mail ops@example.com, cc legal@team.example.org",
    "user@localhost and root@3f2a:/#",
    "https://host:8443/@scope/pkg?x=1",
    "https://github.com/acme/app/blob/main/README.md#L10-L20",
    "image registry.acme.io:5000/app@sha256:9f86d081884c7d65",
    "order 4111111111111112 was shipped",
    "invoice 2026-000-4711-0001",
    "tracking 1Z999AA10123456784",
    "isbn 978-3-16-148410-0",
    "account 1234567890 has 100000000000 cents",
    "call +1 202 555 0143 in the film",
    "diff +12345678 -4711",
    "range 100-2000-3000 and 192.168.100.200:8080",
    "ipv6 2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "GB00 BANK 0000 0000 0000 00",
    "max_tokens: 4096, prompt_tokens=512, token_count: 17",
    "SyntaxError: Unexpected token: '}' at 12:5",
    "unexpected token: identifier expected",
    "eos_token='</s>', pad_token: '<pad>'",
    "next_page_token=CAESBxIFMTIzNDU and nextToken: abc12345def",
    "token = self.tokens[self.position]",
    "client = Client(token=token, password=password)",
    "api_key=settings.api_key",
    "api_key = os.environ['OPENAI_API_KEY']",
    "password: required",
    "password=None secret=null token=''",
    "password: str = Field(min_length=8)",
    "password=${DB_PASSWORD} token=$TOKEN key={{ api_key }}",
    "password=******** secret: <hidden>",
    "the password was wrong, the token: expired",
    "PWD=/home/user/app OLDPWD=/tmp",
    "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC123",
    "secretKeyRef: {name: db, key: password}",
    "token_url: https://auth.acme.io/v1/token",
    "private_key_path=/etc/ssl/private/app1.pem",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
    "expected -----BEGIN PRIVATE" + " KEY----- but the file is empty",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0 deploy",
    "sk-learn, sk-toggleable__label-arrow, div.sk-text-repr-fallback",
    "task-17 on disk-2: risk-free-rate-of-return-2026",
    "ASIA-PACIFIC and AKIA are not keys, nor is AIza",
    "SKIPPED TASK SK-2041",
    "hf_hub_download and npm_config_registry and ghp_ as a prefix",
    "xoxo, mum",
    "glpat- is how a GitLab token begins; sk-... is cut",
    "sk_live_... was rotated",
    "a bearer of bad news, Bearer authentication is required",
    "Basic authentication is deprecated",
    "Authorization: required",
    "cookie: consent banner covers the button",
    "curl -s https://api.acme.io/v1/health | jq .",
    "docker run -u 1000:1000 app",
    "eyJ is how a token begins",
    "keyboard: ok, monkey=12345678, primary key: 4711",
    "KeyError: 'api_key'",
    "config: sig=0.034, p<0.05",
    "/etc/passwd:12: no such user",
    "hooks: pre-commit, pre-push",
    "test_pass=12 of 14, first-pass: ok, bypass: yes, compass=12345678",
    "service: db7, shared: key, master branch: 12345678",
    "Q~ is nothing",
    "gpt-5-mini-2026-01-15 and claude-opus-5-20260801",
    "arn:aws:iam::123456789012:role/deploy",
    "s3://acme-logs/2026/11/20/part-00000-4111.parquet",
    "key=value; a=1; b=22222222222222",
)
"""What must stay as it is."""
