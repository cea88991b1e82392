"""Patterns, sessions and steps as HTML. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.displays.hits import chips_html, content_html, score_html
from hiermem_core.displays.markup import Html, element, joined
from hiermem_core.displays.run_wording import step_lines, used_text
from hiermem_core.displays.wording import moment_text
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from hiermem_core.models.patterns import Pattern, PatternHit
    from hiermem_core.models.sessions import Session, Step


def pattern_html(pattern: Pattern) -> Html:
    """Return a pattern: its confidence, how often it was used, its data."""
    facts = [pattern.name, used_text(pattern), moment_text(pattern.updated_at)]
    confidence = score_html(pattern.confidence, "confidence, 0 to 1")
    return _shown(dump_json(pattern.data), confidence, chips_html(facts))


def pattern_hit_html(hit: PatternHit) -> Html:
    """Return a pattern that was found: its score, and what was found of it."""
    facts = [hit.pattern.name, f"confidence {hit.pattern.confidence:.2f}", used_text(hit.pattern)]
    return _shown(hit.text, score_html(hit.score), chips_html(facts))


def session_html(session: Session) -> Html:
    """Return a session: how it stands, when it began and ended, what is known of it."""
    ended = f"ended {moment_text(session.ended_at)}" if session.ended_at else ""
    facts = [session.id, session.status, f"started {moment_text(session.started_at)}", ended]
    return _shown(dump_json(session.data) if session.data else "", chips_html(facts))


def step_html(step: Step) -> Html:
    """Return a step: its place and worth, then what was seen, done and got."""
    worth = "" if step.reward is None else f"reward {step.reward:g}"
    facts = [f"#{step.step}", moment_text(step.created_at), worth]
    return _shown("\n".join(step_lines(step)), chips_html(facts))


def _shown(content: str, *head: Html) -> Html:
    return joined([element("div", *head, class_="hm-head"), content_html(content)])
