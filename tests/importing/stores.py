"""Stores of claude-flow, written for a test."""

from __future__ import annotations

from importing import shapes


def simple(place, **namespaces):
    listed = {
        name: [
            {"key": key, "value": value, "namespace": name, "timestamp": 1796048835000}
            for key, value in pairs.items()
        ]
        for name, pairs in namespaces.items()
    }
    return place.write("memory/memory-store.json", listed)


def store(place, *rows, name=".swarm/memory.db"):
    return place.database(name, shapes.STORE, rows=[(shapes.PUT, rows)])


def row(key, value="x", namespace="default", created=shapes.SECOND):
    return key, value, namespace, created, created
