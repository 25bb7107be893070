"""The recounter of the adapters counts with the tokenizer of the model, and only whole prompts."""

from __future__ import annotations

from typing import Any

from weighbridge.capture.wire.counting import Counting
from weighbridge.capture.wire.recounts import Delivered, Recounted
from weighbridge.recount.recounter import Messages, Recount, Tools
from weighbridge.recount.transformers import TransformersRecounter
from weighbridge.schemas.enumerations import Script


class Words:
    """One token a word; its template adds two to a message."""

    tokenizer = "words"
    template = "two"

    def count(self, text: str) -> Recount:
        return Recount(len(text.split()), None, 1, False, False, self.tokenizer)

    def count_chat(self, messages: Messages, tools: Tools | None = None) -> Recount:
        words = sum(len(str(message["content"]).split()) for message in messages)
        return Recount(words + 2 * len(messages), 2 * len(messages), 0, True, False, self.tokenizer, self.template)


COUNTING = Counting({"tiny": Words()})


def counted(asked: dict[str, object], *text: str, model: str = "tiny") -> Recounted | None:
    return COUNTING(Delivered(model, "openai_chat", asked, text))


def test_a_conversation_is_counted_with_its_template_and_every_choice() -> None:
    asked: dict[str, object] = {"messages": [{"role": "user", "content": "one two three"}]}
    assert counted(asked, "a b", "c") == Recounted(
        input=5, template=2, special=0, output=3, has_template=True, script=Script.LATIN
    )


def test_the_script_is_that_of_the_answer_and_where_there_is_none_that_of_the_prompt() -> None:
    asked: dict[str, object] = {"messages": [{"role": "user", "content": "say it in Russian"}]}
    for text, script in (("да", Script.CYRILLIC), ("", Script.LATIN)):
        told = counted(asked, text)
        assert told is not None
        assert told.script == script


def test_a_plain_prompt_is_counted_without_a_template() -> None:
    assert counted({"prompt": "one two"}) == Recounted(
        input=2, template=None, special=1, output=None, script=Script.LATIN
    )


def test_half_a_prompt_is_no_figure() -> None:
    asked: dict[str, object] = {"system": "be brief", "messages": [{"role": "user", "content": "one"}]}
    assert counted(asked, "a b") == Recounted(output=2, script=Script.LATIN)


def test_a_model_that_is_not_listed_is_not_counted() -> None:
    assert counted({"prompt": "one"}, "a", model="other") is None


def test_a_real_tokenizer_finds_what_its_template_renders(fast: Any) -> None:
    messages = [{"role": "user", "content": "Weights and measures"}]
    found = Counting({"tiny": TransformersRecounter(fast)})(
        Delivered("tiny", "openai_chat", {"messages": messages}, ("The scale",))
    )
    assert found is not None
    rendered = fast.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert found.input == len(fast(rendered, add_special_tokens=False)["input_ids"])
    assert found.output == len(fast("The scale", add_special_tokens=False)["input_ids"])
    assert found.has_template is True
