"""Memory of agents: a middleware for `create_agent` of LangChain 1.x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain.agents.middleware import AgentMiddleware, AgentState

from hiermem_core import HierMem, InvalidInputError, ModelInfo, TurnConflictError
from langchain_hiermem.identity import tenant_of, thread_of
from langchain_hiermem.naming import turn_id_of
from langchain_hiermem.recalls import RecalledHits
from langchain_hiermem.runs import (
    instructions,
    is_question,
    shown_drafts_of,
    start_of_last_exchange,
    start_of_run,
    to_store,
)
from langchain_hiermem.schemas import schemas_of
from langchain_hiermem.tellings import ToldOnce, logger
from langchain_hiermem.views import SystemPrompt, message_of_view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime

    from hiermem_core import Context, Profile, Thread, TurnDraft

    Request = ModelRequest[Any]
    Response = ModelResponse[Any]

NAME = "HierMemMiddleware"


@dataclass(frozen=True, slots=True)
class _Run:
    """The messages of a model call.

    Attributes:
        earlier: Those that stand in for the stored turns, as a caller sends them, or as a graph has
            them that went back to an earlier checkpoint; `None`: the stored ones are shown.
        current: Those of this run, after the system messages of the whole state.
    """

    earlier: Sequence[BaseMessage] | None
    current: Sequence[BaseMessage]


class HierMemMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives each model call of an agent what fits its budget, and remembers the whole run.

    A model call gets the run's own messages, the newest whole exchanges of the thread before them,
    its notes, and what is recalled for the question, within `budget_tokens` less `output_reserve`,
    the system message and the schemas of tools counted. Earlier turns come from HierMem: the agent
    remembers without a checkpointer, and beside one the cost does not grow with the thread. What
    is left out is left out of this one call: the graph's state is never changed.

    When a run ends, all its messages are stored at once, tool calls and results too, and learned
    from in the background. A run that fails or is abandoned stores nothing; with a checkpointer,
    the next run that ends stores what it left.

    Tenant and thread come from the run's context, such as `HierMemContext`, the thread else from
    the graph's config; then from here. One instance serves any number of them at once. Put it last
    in the list of middleware: what others add further inside is not counted. Do not combine it
    with `SummarizationMiddleware`, which takes messages out before they are stored. A thread that
    is deleted here and still stands in a checkpointer is stored anew by the next run. A thread is
    one line: what a graph says that went back to an earlier checkpoint goes to its end.

    Args:
        budget_tokens: Of everything sent to the model and its answer.
        output_reserve: Tokens of it kept for the answer.
        on_over_budget: What to do where the run alone does not fit: shorten it, or raise.
        recall: Look for what the window lost, once a question.
        recall_namespace: Of entries, only those there and below.
        incoming: `"full"` for callers that send the whole conversation each time, without a
            checkpointer: then that is the window, and only its last exchange is stored.
        save: `False`: store nothing.
        log_steps: Log each tool call of a run that is stored as a step of the session that bears
            the thread's name: the tool and its arguments, what was said before, and the result.
        learn: `False`: learn nothing.
        on_save_error: `"log"`: a run whose messages cannot be stored ends well all the same.
        on_context: Called with the context of each model call. Without it, what is left out is
            logged, once a thread and code.
        tools: Given to the agent, such as those of `create_memory_tools`.
        name: Two in one agent need two names.

    Raises:
        InvalidInputError: An option is out of range; raised by the constructor.
        MissingIdentityError: A run names no tenant or thread; raised before any model call.
        BudgetExceededError: What must be sent does not fit; raised by a model call.

    Example:
        Setup: `pip install "hiermem-core[agents]"`. Instantiate:
        ```python
        agent = create_agent(
            model,
            tools=[search],
            middleware=[HierMemMiddleware(hiermem, budget_tokens=4000)],
            context_schema=HierMemContext,
        )
        ```
        Use:
        ```python
        agent.invoke({"messages": "Where were we?"}, context=HierMemContext("alice", "trip"))
        ```
        Async:
        ```python
        await agent.ainvoke({"messages": "And then?"}, context=HierMemContext("alice", "trip"))
        ```
    """

    def __init__(
        self,
        hiermem: HierMem,
        *,
        budget_tokens: int,
        output_reserve: int = 1024,
        on_over_budget: Literal["truncate", "raise"] = "truncate",
        tenant_id: str | None = None,
        thread_id: str | None = None,
        profile: Profile | None = None,
        recall: bool = True,
        recall_namespace: str | None = None,
        incoming: Literal["delta", "full"] = "delta",
        save: bool = True,
        log_steps: bool = False,
        learn: bool = True,
        on_save_error: Literal["raise", "log"] = "raise",
        on_context: Callable[[Context], None] | None = None,
        tools: Sequence[BaseTool] = (),
        name: str = NAME,
    ) -> None:
        super().__init__()
        _check_budget(budget_tokens, output_reserve)
        _check_choice("on_over_budget", on_over_budget, "truncate", "raise")
        _check_choice("incoming", incoming, "delta", "full")
        _check_choice("on_save_error", on_save_error, "raise", "log")
        self.tools = list(tools)
        self._hiermem = hiermem
        self._model = ModelInfo("", budget_tokens)
        self._output_reserve = output_reserve
        self._on_over_budget = on_over_budget
        self._tenant_id = tenant_id
        self._thread_id = thread_id
        self._profile = profile
        self._recall = recall
        self._recall_namespace = recall_namespace
        self._is_full = incoming == "full"
        self._saves = save
        self._logs_steps = log_steps
        self._learns = learn
        self._logs_save_errors = on_save_error == "log"
        self._on_context = on_context
        self._name = name
        self._recalled = RecalledHits()
        self._told = ToldOnce()

    @property
    def name(self) -> str:
        """The name of the instance in its agent."""
        return self._name

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Find out whose run it is. Writes nothing.

        Raises:
            MissingIdentityError: It names no tenant or thread.
        """
        del state
        self._thread(runtime)

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Do `before_agent`, which blocks nothing."""
        self.before_agent(state, runtime)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Call the model with what fits. Writes nothing, so it may run again for the same call.

        Raises:
            BudgetExceededError: What must be sent does not fit.
        """
        view, context = self._view(request)
        self._tell(request, context)
        return handler(view)

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Do `wrap_model_call` without blocking the loop."""
        view, context = await self._hiermem.pool.run(self._view, request)
        self._tell(request, context)
        return await handler(view)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what the run said, and learn from it in the background.

        Raises:
            BackendError: It cannot be stored, and `on_save_error` says to raise.
        """
        if self._saves:
            self._save(state["messages"], self._thread(runtime))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Do `after_agent` without blocking the loop."""
        await self._hiermem.pool.run(self.after_agent, state, runtime)

    def _thread(self, runtime: Runtime[Any]) -> Thread:
        context = runtime.context
        info = getattr(runtime, "execution_info", None)
        configured = getattr(info, "thread_id", None)
        tenant_id = tenant_of(context, self._tenant_id)
        thread_id = thread_of(context, configured, self._thread_id)
        return self._hiermem.tenant(tenant_id).thread(thread_id)

    def _view(self, request: Request) -> tuple[Request, Context]:
        """Return the request as the model gets it, and the context it is made of."""
        thread = self._thread(request.runtime)
        run = self._run(request.messages, thread)
        prompt = SystemPrompt(request.system_message)
        context = self._context(request, thread, run, prompt)
        turns = context.messages[1:] if prompt.text else context.messages
        text = context.messages[0].content or "" if prompt.text else ""
        sent = [*(run.earlier or ()), *run.current]
        given = {str(turn_id_of(message, thread.id)): message for message in sent if message.id}
        view = request.override(
            system_message=prompt.filled(text),
            messages=[message_of_view(turn, given) for turn in turns],  # type: ignore[misc]  # AnyMessage is a union of these
        )
        return view, context

    def _run(self, messages: Sequence[BaseMessage], thread: Thread) -> _Run:
        start = 0 if self._is_full else start_of_run(messages, thread.id, thread.known)
        if self._is_full or start == len(messages):
            start = start_of_last_exchange(messages)
            return _Run(messages[:start], messages[start:])
        return _Run(None, [*instructions(messages[:start]), *messages[start:]])

    def _context(
        self, request: Request, thread: Thread, run: _Run, prompt: SystemPrompt
    ) -> Context:
        question = None
        generation = 0
        if self._recall:
            asked = [m.id for m in run.current if is_question(m)]
            question = (thread.tenant_id, thread.id, asked[-1]) if asked and asked[-1] else None
            generation = self._hiermem.tenant(thread.tenant_id).memory.generation()
        recalled = self._recalled.find(question, generation)
        earlier: list[TurnDraft] | None = None
        if run.earlier is not None:
            earlier = shown_drafts_of(run.earlier, thread.id)
        context = thread.context(
            current=shown_drafts_of(run.current, thread.id),
            window=earlier,
            model=self._model,
            output_reserve=self._output_reserve,
            system=prompt.text,
            prefix_tokens=prompt.tokens_beside(thread.counter),
            tools=schemas_of(request.tools, request.response_format),
            profile=self._profile,
            on_over_budget=self._on_over_budget,
            recall=self._recall,
            recall_namespace=self._recall_namespace,
            recalled=recalled,
        )
        if recalled is None:
            self._recalled.keep(question, generation, context.hits)
        return context

    def _tell(self, request: Request, context: Context) -> None:
        if self._on_context is not None:
            self._on_context(context)
        elif context.warnings:
            thread = self._thread(request.runtime)
            self._told.tell(thread.tenant_id, thread.id, context)

    def _save(self, messages: Sequence[BaseMessage], thread: Thread) -> None:
        try:
            if self._is_full:
                start = start_of_last_exchange(messages)
            else:
                start = start_of_run(messages, thread.id, thread.known)
            drafts = to_store(messages[start:], thread.id)
            if self._logs_steps:  # before the turns, by which a run is known to be stored
                self._hiermem.tenant(thread.tenant_id).session(thread.id).log_calls(drafts)
            _append(thread, drafts)
        except Exception as error:  # whatever fails to be saved is raised or logged
            if not self._logs_save_errors:
                raise
            logger.error("a run of thread %s was not stored: %s", thread.id, type(error).__name__)
            return
        if self._learns and any(draft.role == "assistant" for draft in drafts):
            thread.save_context(profile=self._profile)


def _append(thread: Thread, drafts: Sequence[TurnDraft]) -> None:
    """Store turns; one that another process stored meanwhile, and then edited, stays as it is."""
    while True:
        try:
            thread.append(drafts)
        except TurnConflictError as conflict:
            drafts = [it for place, it in enumerate(drafts) if place not in conflict.places]
        else:
            return


def _check_budget(budget_tokens: int, output_reserve: int) -> None:
    for name, figure in (("budget_tokens", budget_tokens), ("output_reserve", output_reserve)):
        if isinstance(figure, bool) or not isinstance(figure, int) or figure < 0:
            raise InvalidInputError(name, "must be a whole number, at least 0")
    if output_reserve >= budget_tokens:
        raise InvalidInputError(
            "output_reserve", f"leaves nothing of {budget_tokens} tokens; give a smaller one"
        )


def _check_choice(name: str, given: str, *known: str) -> None:
    if given not in known:
        raise InvalidInputError(name, f"must be one of {', '.join(map(repr, known))}")
