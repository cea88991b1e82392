"""The pages of the inspector: each reads, and hands values to a template."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from hiermem_core.displays.hits import entry_html
from hiermem_core.displays.showing import html_of, style_sheet
from hiermem_core.displays.turns import turn_html
from hiermem_core.displays.wording import counted, moment_text
from hiermem_core.errors import HierMemError, InvalidInputError, NotFoundError
from hiermem_core.inspector import reading
from hiermem_core.inspector.guarding import Door, Guard
from hiermem_core.models.timelines import timeline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from hiermem_core.hiermem import HierMem
    from hiermem_core.models.results import ForgetReceipt
    from hiermem_core.tenant import Tenant

_BUDGET = 4000
_NOT_FOUND, _BAD, _FAILED = 404, 400, 500
_MAX_NUMBER = 10_000_000


@dataclass(frozen=True, slots=True)
class Inspector:
    """What the pages work on.

    Attributes:
        tenants: Those that may be opened; any other is not there.
    """

    memory: HierMem
    tenants: Sequence[str]
    door: Door
    templates: Environment

    def tenant(self, request: Request) -> Tenant:
        """Return the tenant that a request names.

        Raises:
            HTTPException: It names none that may be opened.
        """
        name = request.query_params.get("tenant", "")
        if name not in self.tenants:
            raise HTTPException(_NOT_FOUND, "there is no such tenant here")
        return self.memory.tenant(name)

    def answer(self, page: str, status: int = 200, /, **values: Any) -> Response:
        """Return a page."""
        text = self.templates.get_template(page).render(tenants=self.tenants, **values)
        return HTMLResponse(text, status)


def create_app(memory: HierMem, *, tenants: Sequence[str], door: Door) -> ASGIApp:
    """Return the inspector of an open memory as an ASGI application."""
    inspector = Inspector(memory, tuple(tenants), door, _environment(f"/{door.token}"))
    pages = {"/": home, "/tenant": overview, "/thread": thread, "/turns": turns}
    pages |= {"/context": context, "/timeline": timeline, "/entries": entries, "/search": search}
    routes: list[Route | Mount] = [
        Route(path, partial(page, inspector), methods=["GET"]) for path, page in pages.items()
    ]
    routes.append(Route("/forget", partial(ask_to_forget, inspector), methods=["GET"]))
    routes.append(Route("/forget", partial(forget, inspector), methods=["POST"]))
    routes.append(Route("/displays.css", displays_css, methods=["GET"]))
    routes.append(Mount("/static", StaticFiles(packages=[("hiermem_core.inspector", "static")])))
    handlers: Any = {
        HierMemError: partial(_failed, inspector),
        HTTPException: partial(_failed, inspector),
    }
    app = Starlette(routes=[Mount(f"/{door.token}", routes=routes)], exception_handlers=handlers)
    return Guard(app, door)


def home(inspector: Inspector, request: Request) -> Response:
    """Show the tenants, or the only one."""
    if len(inspector.tenants) == 1:
        name = urlencode({"tenant": inspector.tenants[0]})
        return RedirectResponse(f"/{inspector.door.token}/tenant?{name}")
    del request
    return inspector.answer("tenants.html", tenant=None)


def overview(inspector: Inspector, request: Request) -> Response:
    """Show what a tenant has: figures, threads."""
    tenant = inspector.tenant(request)
    found = reading.threads_page(tenant, _number(request, "offset", 0))
    return inspector.answer(
        "tenant.html",
        tenant=tenant,
        threads=found,
        stats=tenant.stats(),
        memory=tenant.memory.stats(),
    )


def thread(inspector: Inspector, request: Request) -> Response:
    """Show a thread: its notes, what a model would read of it, its newest turns."""
    tenant = inspector.tenant(request)
    opened = tenant.thread(_text(request, "thread"))
    info, asked = opened.info(), _asked(request)
    found, before = reading.turns_page(opened, _number(request, "before", _MAX_NUMBER))
    return inspector.answer(
        "thread.html",
        tenant=tenant,
        thread=opened,
        info=info,
        context=reading.context_of(opened, **asked),
        asked=asked | {"thread": opened.id},
        notes=opened.state(),
        turns=found,
        before=before,
        least=reading.LEAST,
        most=reading.most_tokens(info),
        step=reading.STEP,
    )


def turns(inspector: Inspector, request: Request) -> Response:
    """Show older turns of a thread."""
    tenant = inspector.tenant(request)
    opened = tenant.thread(_text(request, "thread"))
    found, before = reading.turns_page(opened, _number(request, "before", _MAX_NUMBER))
    return inspector.answer("turns.html", tenant=tenant, thread=opened, turns=found, before=before)


def context(inspector: Inspector, request: Request) -> Response:
    """Show what a model would read of a thread for a question and a budget."""
    tenant = inspector.tenant(request)
    opened = tenant.thread(_text(request, "thread"))
    asked = _asked(request)
    built = reading.context_of(opened, **asked)
    asked |= {"thread": opened.id}
    return inspector.answer("context.html", tenant=tenant, context=built, asked=asked)


def timeline(inspector: Inspector, request: Request) -> Response:
    """Show which turns of a thread such a context holds."""
    tenant = inspector.tenant(request)
    opened = tenant.thread(_text(request, "thread"))
    built = reading.context_of(opened, **_asked(request))
    return HTMLResponse(html_of(timeline_of(opened.turns(), built)))


def entries(inspector: Inspector, request: Request) -> Response:
    """Show entries, of a namespace or all."""
    tenant = inspector.tenant(request)
    namespace = request.query_params.get("namespace") or None
    found = reading.entries_page(tenant, namespace, _number(request, "offset", 0))
    names = tenant.memory.stats().entries_by_namespace
    return inspector.answer(
        "entries.html", tenant=tenant, entries=found, namespace=namespace, namespaces=names
    )


def search(inspector: Inspector, request: Request) -> Response:
    """Show what answers a question, each hit with how it came by its score."""
    tenant = inspector.tenant(request)
    question = request.query_params.get("q", "").strip()
    found = tenant.recall(question, limit=20, explain=True) if question else None
    return inspector.answer("search.html", tenant=tenant, question=question, found=found)


def ask_to_forget(inspector: Inspector, request: Request) -> Response:
    """Show what would be forgotten, and a button that does it."""
    tenant = inspector.tenant(request)
    selector = _selector(tenant, request)
    entry = reading.entry_of(tenant, selector["entry"]) if "entry" in selector else None
    would = _forgotten(tenant, selector, dry_run=True)
    return inspector.answer(
        "forget.html", tenant=tenant, selector=selector, entry=entry, receipt=would
    )


def forget(inspector: Inspector, request: Request) -> Response:
    """Forget one conversation or one memory for good, and show the receipt."""
    tenant = inspector.tenant(request)
    selector = _selector(tenant, request)
    receipt = _forgotten(tenant, selector, dry_run=False)
    return inspector.answer("forgotten.html", tenant=tenant, selector=selector, receipt=receipt)


def displays_css(request: Request) -> Response:
    """Return the style of the displays, which notebooks get with each of them."""
    del request
    return Response(style_sheet(), media_type="text/css")


def _selector(tenant: Tenant, request: Request) -> dict[str, str]:
    """Return what is to be forgotten, `thread` or `entry` and its id.

    Raises:
        InvalidInputError: The request does not name exactly one.
        NotFoundError: It is not there.
    """
    asked = {name: request.query_params.get(name) for name in ("thread", "entry")}
    named = {name: value for name, value in asked.items() if value}
    if len(named) != 1:
        raise InvalidInputError("forget", "name a thread or an entry")
    if "thread" in named:
        tenant.thread(named["thread"]).info()
    else:
        reading.entry_of(tenant, named["entry"])
    return named


def _forgotten(tenant: Tenant, selector: Mapping[str, str], *, dry_run: bool) -> ForgetReceipt:
    if "thread" in selector:
        return tenant.forget(thread_id=selector["thread"], dry_run=dry_run)
    return tenant.forget(ids=[selector["entry"]], dry_run=dry_run)


def _failed(inspector: Inspector, request: Request, error: Exception) -> Response:
    """Say what went wrong; an error's text holds no content."""
    del request
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    else:
        known = ((NotFoundError, _NOT_FOUND), (InvalidInputError, _BAD))
        status = next((code for kind, code in known if isinstance(error, kind)), _FAILED)
        text = str(error)
    return inspector.answer("error.html", status, tenant=None, text=text)


def _asked(request: Request) -> dict[str, Any]:
    """Return the question and the budget of a context, as the address names them."""
    question = request.query_params.get("question", "").strip()
    return {"question": question, "budget": _number(request, "budget", _BUDGET)}


def _text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value:
        raise InvalidInputError(name, "is missing in the address")
    return value


def _number(request: Request, name: str, default: int) -> int:
    """Return a number of the address.

    Raises:
        InvalidInputError: It is none, or out of range.
    """
    given = request.query_params.get(name, str(default))
    if not (given.isascii() and given.isdecimal()) or len(given) > len(str(_MAX_NUMBER)):
        raise InvalidInputError(name, "must be a whole number")
    return min(int(given), _MAX_NUMBER)


def _environment(root: str) -> Environment:
    """Return the templates; whatever they show is escaped."""
    environment = Environment(
        loader=PackageLoader("hiermem_core.inspector"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown: dict[str, Callable[..., Any]] = {
        "show": html_of,
        "turn": turn_html,
        "entry": entry_html,
        "counted": counted,
        "moment": moment_text,
    }
    environment.filters.update(shown)
    environment.globals["url"] = partial(_url, root)
    environment.globals["root"] = root
    return environment


def _url(root: str, page: str, **query: object) -> str:
    """Return the address of a page; what is `None` is left out."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{root}/{page}" + (f"?{urlencode(given)}" if given else "")
