"""Chat models that are functions, objects of one's own, or named by an import path."""

import functools
import sys

import pytest

from hiermem_core import ConfigurationError, InvalidInputError, as_chat_model
from hiermem_core.learning.chat_models import FunctionModel
from hiermem_core.models.calls import CallMeta, Completion, PromptMessage
from hiermem_core.testing import ScriptedModel

META = CallMeta("MEMORY_WORKING", "acme", "t1")
MESSAGES = (PromptMessage("system", "Keep notes."), PromptMessage("user", "Hello"))


def complete(model, *, model_id=None, max_tokens=100):
    return as_chat_model(model).complete(
        MESSAGES, model_id=model_id, max_tokens=max_tokens, meta=META
    )


def shout(messages):
    return messages[-1].content.upper()


async def shout_later(messages):
    return shout(messages)


class Shouter:
    def __call__(self, messages):
        return shout(messages)

    def method(self, messages):
        return shout(messages)

    async def later(self, messages):
        return shout(messages)


class LaterShouter:
    async def __call__(self, messages):
        return shout(messages)


class LaterModel:
    async def complete(self, messages, *, model_id, max_tokens, meta):
        return Completion("")


SHOUTER = Shouter()

FUNCTIONS = {
    "a function": shout,
    "a method": SHOUTER.method,
    "an object that is called": SHOUTER,
    "a part of a function": functools.partial(lambda loud, messages: shout(messages), 1),
}

ASYNCHRONOUS = {
    "a function": shout_later,
    "a method": SHOUTER.later,
    "an object that is called": LaterShouter(),
    "a part of a function": functools.partial(shout_later),
    "a model": LaterModel(),
}

NO_MODELS = {
    "nothing": None,
    "a number": 7,
    "a mapping": {"complete": shout},
    "a list": [shout],
    "bytes": b"package.module:name",
    "a plain object": object(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_is_asked_with_the_messages(function):
    assert complete(function) == Completion("HELLO")


def test_a_function_gets_a_list_of_its_own():
    seen = []
    model = as_chat_model(lambda messages: seen.append(messages) or "")

    for _ in range(2):
        model.complete(MESSAGES, model_id=None, max_tokens=1, meta=META)

    assert seen == [list(MESSAGES), list(MESSAGES)]
    assert seen[0] is not seen[1]


def test_a_function_has_one_model_only():
    with pytest.raises(ConfigurationError, match="cheap_model_id"):
        complete(shout, model_id="small")


def test_a_function_may_say_which_model_it_is():
    def named(messages):
        return "yes"

    named.model_name = "small"

    assert complete(named, model_id="small").text == "yes"
    with pytest.raises(ConfigurationError):
        complete(named, model_id="large")


def test_what_a_function_raises_passes_through():
    def broken(messages):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        complete(broken)


def test_a_model_of_ones_own_stays_as_it_is():
    model = ScriptedModel(["Hi"])

    assert as_chat_model(model) is model
    assert as_chat_model(as_chat_model(shout)).__class__ is FunctionModel


@pytest.mark.parametrize("value", ASYNCHRONOUS.values(), ids=ASYNCHRONOUS)
def test_what_is_asynchronous_is_refused(value):
    with pytest.raises(InvalidInputError, match="asynchronous; give the synchronous one"):
        as_chat_model(value)


@pytest.mark.parametrize("value", [Shouter, ScriptedModel, FunctionModel, str, dict])
def test_a_class_is_refused(value):
    with pytest.raises(InvalidInputError, match=f"{value.__qualname__} is a class; give an object"):
        as_chat_model(value)


@pytest.mark.parametrize("value", NO_MODELS.values(), ids=NO_MODELS)
def test_what_answers_nothing_is_refused(value):
    with pytest.raises(InvalidInputError, match="answers nothing; give a"):
        as_chat_model(value)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Give a function that writes a module which can be imported by its name."""
    monkeypatch.syspath_prepend(tmp_path)
    written = []

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


def test_an_import_path_leads_to_a_function(module):
    name = module(
        "shouting_models", "def shout(messages):\n    return messages[-1].content.upper()"
    )

    assert complete(f"{name}:shout").text == "HELLO"


def test_an_import_path_leads_to_a_model_of_ones_own(module):
    source = "from hiermem_core.testing import ScriptedModel\nmodel = ScriptedModel(['Hi'])"

    assert complete(f"{module('scripted_models', source)}:model").text == "Hi"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            ":",
            "gpt-4o-mini",
            "hiermem_core",
            "hiermem_core:",
            ":shout",
            "no_such_module:shout",
        ),
        *("hiermem_core:no_such_name", ".models:shout", "hiermem_core.:shout", "os:path.join"),
        *("a:b:c", "../models:shout", "a b:c", "\x00:x"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path):
    with pytest.raises(ConfigurationError, match=r"leads nowhere; name it as package\.module:name"):
        as_chat_model(path)


@pytest.mark.parametrize("source", ["1 / 0", "def", "raise SystemError"])
def test_a_module_that_cannot_be_imported_is_refused_with_its_cause(module, source):
    name = module("broken_models", source)

    with pytest.raises(ConfigurationError) as raised:
        as_chat_model(f"{name}:shout")

    assert isinstance(raised.value.__cause__, (ZeroDivisionError, SyntaxError, SystemError))


def test_a_path_to_a_class_or_to_what_is_asynchronous_is_refused(module):
    name = module("later_models", "class Model: ...\nasync def later(messages): ...\nnumber = 7")

    for path in ("Model", "later", "number"):
        with pytest.raises(InvalidInputError):
            as_chat_model(f"{name}:{path}")
