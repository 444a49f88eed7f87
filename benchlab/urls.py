"""Every address of the site: pages, REST API, administration."""

from allauth.account import views as account_views
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.openid_connect.provider import (
    OpenIDConnectProvider,
)
from django.http import HttpRequest, JsonResponse
from django.urls import include, path, re_path
from django.views.decorators.http import require_safe

from benchlab import statement_limits
from runs import urls
from runs.access import addresses
from runs.operations.api import MetricsDoor, readyz

# Here and not by its app: that takes 4 MB of control and workers, where nobody logs in.
registry.register(OpenIDConnectProvider)

# Those of django-allauth that are in use here, and not its old ones.
accounts = [
    path("", include("allauth.account.urls")),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", include("allauth.usersessions.urls")),
    path("linked/", include("allauth.socialaccount.urls")),
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
]


@addresses.page("healthz")
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process answers. What it needs is `/readyz`: a process that waits for its
    database is not repaired by a restart."""
    return JsonResponse({"status": "ok"})


handler500 = statement_limits.server_error_page

urlpatterns = [
    # First, since an address is looked for from above, and programs ask most often.
    path("api/", include((urls.api, "api"))),
    path("", include(urls.pages)),
    path("login/", account_views.login, name="login"),
    path("logout/", account_views.logout, name="logout"),
    path("accounts/", include(accounts)),
    path("i18n/", include("django.conf.urls.i18n")),
    # Monitoring follows no redirect: with and without a slash.
    re_path(r"^healthz/?$", healthz, name="healthz"),
    re_path(r"^readyz/?$", readyz, name="readyz"),
    re_path(r"^metrics/?$", MetricsDoor.as_view(), name="metrics"),
]

addresses.require_rules(urlpatterns)
