"""What each address may be asked for, said where its view stands.

    @page("campaign-detail")
    def campaign_detail(request, slug): ...

    @action("annotation-add", Right.ANNOTATE, of="campaign")
    def annotation_add(request, slug): ...

`ADDRESSES` has the rules of all addresses once the addresses of the site are loaded, which
`loaded` sees to. HEAD and OPTIONS count as GET. A page answers no method that it does not name; an
address without a rule does not start (`require_rules`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern, URLResolver, get_resolver

from runs.access.selectors.permission_table import Right

View = TypeVar("View", bound=Callable[..., Any])
Door = TypeVar("Door", bound=type)


@dataclass(frozen=True)
class Rules:
    """The right that each method of an address needs.

    `of` is the kind of object that the address names; where empty, the first word of its name.
    `limits_methods`: whether BenchLab refuses other methods itself. Views of packages and of the
    API know their own.
    """

    rights: Mapping[str, Right]
    of: str = ""
    limits_methods: bool = False


ADDRESSES: dict[str, Rules] = {}


def page(
    name: str, right: Right = Right.LOOK, *, posted: Right | None = None, of: str = ""
) -> Callable[[View], View]:
    """A page: read with one right, and where something is sent to it with another."""
    rights = {"GET": right}
    if posted is not None:
        rights["POST"] = posted
    return _registered(name, rights, of)


def form(name: str, right: Right, *, of: str = "") -> Callable[[View], View]:
    """A page with a form, which is read and sent with the same right."""
    return _registered(name, {"GET": right, "POST": right}, of)


def action(name: str, right: Right, *, of: str = "") -> Callable[[View], View]:
    """What a button does: it is sent, and never read."""
    return _registered(name, {"POST": right}, of)


def _registered(
    name: str, rights: Mapping[str, Right], of: str
) -> Callable[[View], View]:
    def register(view: View) -> View:
        _add(name, Rules(rights, of, limits_methods=True))
        return view

    return register


def door(rights_by_name: Mapping[str, Mapping[str, Right]]) -> Callable[[Door], Door]:
    """The addresses of a door of the API, by the name of each: `{"run-list": reading()}`."""

    def register(view: Door) -> Door:
        for name, rights in rights_by_name.items():
            _add(f"api:{name}", Rules(rights))
        return view

    return register


def reading(right: Right = Right.LOOK, **methods: Right) -> dict[str, Right]:
    """Rights of an address of the API that is read, and of its other methods: `post=...`."""
    return {"GET": right} | acting(**methods)


def acting(**methods: Right) -> dict[str, Right]:
    """Rights of an address of the API that only acts: `post=Right.QUEUE`."""
    return {method.upper(): right for method, right in methods.items()}


def declare_package_views(names: Iterable[str], rights: Mapping[str, Right]) -> None:
    """Addresses whose views are those of packages."""
    for name in names:
        _add(name, Rules(rights))


def _add(name: str, rules: Rules) -> None:
    registered_rules = ADDRESSES.setdefault(name, rules)
    if registered_rules != rules:
        raise ImproperlyConfigured(
            f"The address {name} has two rules: {registered_rules} and {rules}."
        )


def loaded() -> Mapping[str, Rules]:
    """The rules of all addresses of the site."""
    if not get_resolver().url_patterns:
        raise ImproperlyConfigured("The site has no addresses.")
    return ADDRESSES


def require_rules(patterns: Iterable[URLPattern | URLResolver]) -> None:
    """Refuse to start with an address of which nobody said who may use it."""
    missing = sorted(names_of(patterns) - ADDRESSES.keys())
    if missing:
        raise ImproperlyConfigured(
            f"Nobody may use {', '.join(missing)}: say who where the view stands"
            " (runs/access/addresses.py)."
        )


def names_of(patterns: Iterable[URLPattern | URLResolver]) -> set[str]:
    """The names of all addresses below these patterns, with their namespace."""
    names: set[str] = set()
    waiting = [("", pattern) for pattern in patterns]
    while waiting:
        space, pattern = waiting.pop()
        if isinstance(pattern, URLResolver):
            below = f"{space}{pattern.namespace}:" if pattern.namespace else space
            waiting += [(below, inner) for inner in pattern.url_patterns]
        else:
            names.add(f"{space}{pattern.name or pattern.pattern}")
    return names


# Pages of django-allauth, which shows everybody only their own account.
declare_package_views(
    [
        "account_login",
        "account_logout",
        "account_signup",
        "account_email_verification_sent",
        "account_confirm_email",
        "account_confirm_login_code",
        "account_reset_password",
        "account_reset_password_from_key",
        "login",
        "logout",
        "mfa_authenticate",
        "mfa_login_webauthn",
        "openid_connect_login",
        "socialaccount_signup",
    ],
    {"GET": Right.LOOK, "POST": Right.LOOK},
)
declare_package_views(
    [
        "account_change_password",
        "account_email",
        "account_reauthenticate",
        "account_set_password",
        "mfa_activate_totp",
        "mfa_add_webauthn",
        "mfa_deactivate_totp",
        "mfa_download_recovery_codes",
        "mfa_edit_webauthn",
        "mfa_generate_recovery_codes",
        "mfa_index",
        "mfa_list_webauthn",
        "mfa_reauthenticate",
        "mfa_reauthenticate_webauthn",
        "mfa_remove_webauthn",
        "mfa_view_recovery_codes",
        "socialaccount_connections",
        "usersessions_list",
    ],
    {"GET": Right.OWN, "POST": Right.OWN},
)
declare_package_views(
    [
        "account_inactive",
        "account_reset_password_done",
        "account_reset_password_from_key_done",
        "openid_connect_callback",
        "socialaccount_login_cancelled",
        "socialaccount_login_error",
        "api:docs",
    ],
    {"GET": Right.LOOK},
)
declare_package_views(["set_language"], {"POST": Right.LOOK})
