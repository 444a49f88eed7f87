"""Every address of the site: pages, REST API, administration."""

from allauth.account import views as account_views
from django.urls import include, path, re_path

from benchlab import health, statement_limits
from runs.api.operations import MetricsDoor, readyz

handler500 = statement_limits.server_error_page

urlpatterns = [
    # First, since an address is looked for from above, and programs ask most often.
    path("api/", include("runs.api.urls")),
    path("", include("runs.web.urls")),
    path("login/", account_views.login, name="login"),
    path("logout/", account_views.logout, name="logout"),
    path("accounts/", include("benchlab.account_urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    # Monitoring follows no redirect: with and without a slash.
    re_path(r"^healthz/?$", health.healthz, name="healthz"),
    re_path(r"^readyz/?$", readyz, name="readyz"),
    re_path(r"^metrics/?$", MetricsDoor.as_view(), name="metrics"),
]
