"""Personal data by its shape: e-mail addresses, telephone numbers, payment cards, bank accounts."""

from __future__ import annotations

import re

from dspy_reflex.redaction.kind import Kind

_NOBODY = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|org|net|edu))?|invalid|localhost|test)$", re.IGNORECASE)
"""Domains that nobody has (RFC 2606)."""
_FILE = re.compile(
    r"\.(?:avif|bmp|css|csv|gif|gz|html?|ico|jpe?g|js|json|jsx|lock|map|md|mjs|mp[34]|pdf|png|py|rst|scss|svg|tar|tgz|toml"
    r"|tsx?|txt|webp|whl|xml|ya?ml|zip)$",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v?\d+\.\d")
_INVENTED = re.compile(r"555[ .-]?01\d\d$", re.ASCII)
"""Numbers kept for fiction in the North American plan."""
_CARDS = re.compile(
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}",
    re.ASCII,
)
"""Visa, Mastercard, American Express, Diners Club, Discover, JCB and UnionPay, by their first digits and length."""


def _is_address(found: re.Match[str]) -> bool:
    """Somebody's address: not `git@host`, `icon@2x.png`, `package@1.2.3-rc.one` or one of a domain kept for examples."""
    domain = found["domain"]
    return (
        found["local"] != "git"
        and not any(each.search(domain) for each in (_NOBODY, _FILE))
        and not _VERSION.match(domain)
    )


def _is_phone(found: re.Match[str]) -> bool:
    return not _INVENTED.search(found[0]) and 8 <= sum(map(str.isdigit, found[0])) <= 15


def _is_card(found: re.Match[str]) -> bool:
    """A number of a card scheme whose check digit is right (Luhn, ISO/IEC 7812-1)."""
    number = found[0].replace(" ", "").replace("-", "")
    if not _CARDS.fullmatch(number):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (sum(doubled) + sum(map(int, number[-1::-2]))) % 10 == 0


def _is_account(found: re.Match[str]) -> bool:
    """An IBAN whose check digits are right (ISO 7064, MOD 97-10)."""
    number = found[0].replace(" ", "")
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1


PERSONAL = (
    Kind(
        "email",
        r"(?<![A-Za-z0-9])(?P<local>[A-Za-z0-9][\w.%+-]{0,63}+)@"
        r"(?P<domain>(?:[A-Za-z0-9-]{1,63}+\.){1,6}[A-Za-z]{2,24}+)(?![\w(-])(?!\.\w)",
        literals=("@",),
        check=_is_address,
        personal=True,
    ),
    Kind(
        "phone",
        r"\+(?<!\+\+)[1-9]\d{0,2}(?:[ .-]?\(\d{1,4}\)|[ .-]\d)(?:[ .-]{0,2}\d){4,13}(?!\w)|\+(?<!\+\+)[1-9]\d{9,14}(?!\w)",
        plus=True,
        check=_is_phone,
        personal=True,
    ),
    Kind(
        "phone",
        r"(?:\([2-9]\d\d\) ?|(?<![\w.+-])[2-9]\d\d[.-])[2-9]\d\d[ .-]\d{4}(?![\w-])(?!\.\d)",
        digits=True,
        check=_is_phone,
        personal=True,
    ),
    Kind(
        "card_number",
        r"\d(?<![\w.]\d)(?:\d{13,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})(?!\w)(?!\.\d)",
        digits=True,
        check=_is_card,
        personal=True,
    ),
    Kind(
        "iban",
        r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z]\d{2}"
        r"(?:[A-Z0-9]{11,30}| [A-Z0-9]{4}(?: (?=[A-Z]{0,3}\d)[A-Z0-9]{4}){1,6}(?: [A-Z0-9]{1,3})?)(?![A-Za-z0-9])",
        digits=True,
        check=_is_account,
        personal=True,
    ),
)
"""Personal data."""
