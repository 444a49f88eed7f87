"""Addresses of topics."""

from django.urls import URLPattern, URLResolver, path

from runs.shared.urls import page
from runs.topics import views

pages = [
    path("topics/", views.topic_list, name="topic-list"),
    path("topics/<slug:slug>/", views.topic, name="topic"),
    page("topics/<slug:slug>/chart.<slug:form>", views.topic_chart),
]
api: list[URLPattern | URLResolver] = []
