"""Addresses of topics."""

from django.urls import URLPattern, URLResolver, path

from runs.topics import views

pages = [
    path("topics/", views.topic_list, name="topic-list"),
    path("topics/<slug:slug>/", views.topic, name="topic"),
]
api: list[URLPattern | URLResolver] = []
