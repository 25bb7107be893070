"""Recounters of the adapters, made from tokenizers: which model is counted with which.

install(client, recorder, recounter=Counting({"gpt-4o": TiktokenRecounter(...)}))
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.capture.wire.recounts import Delivered, Recounted
from weighbridge.recount.recounter import Recounter, texts
from weighbridge.recount.script import script


class Counting:
    """Counts what one call asked and got with the tokenizer of its model; a model that is not listed is not counted.

    A conversation is counted as its template renders it, the system text and tools of the request included where the
    API keeps them in the messages. Where the request keeps some of its prompt elsewhere (`system`, `instructions`), or
    parts of it are not text, only the output is counted: half a prompt is no figure.
    """

    def __init__(self, recounters: Mapping[str, Recounter]) -> None:
        self._recounters = dict(recounters)

    def __call__(self, delivered: Delivered, /) -> Recounted | None:
        """See `recounts.Recounter`."""
        counter = self._recounters.get(delivered.model or "")
        if counter is None:
            return None
        output = sum(counter.count(text).tokens for text in delivered.text) if delivered.text else None
        written_in = script("".join(delivered.text)) if any(delivered.text) else None
        asked = delivered.asked
        messages, tools = asked.get("messages"), asked.get("tools")
        prompt = asked.get("prompt")
        if isinstance(prompt, str):
            counted = counter.count(prompt)
        elif isinstance(messages, list) and not asked.get("system") and not asked.get("instructions"):
            counted = counter.count_chat(messages, tools if isinstance(tools, list) else None)
        else:
            return Recounted(output=output, script=written_in)
        return Recounted(
            input=counted.tokens,
            template=counted.template,
            special=counted.special,
            output=output,
            has_template=counted.has_template,
            has_special=counted.has_special,
            script=written_in or script(_asked(prompt, messages)),
        )


def _asked(prompt: object, messages: object) -> str:
    """The text of a prompt."""
    if isinstance(prompt, str):
        return prompt
    return "".join(texts(messages)) if isinstance(messages, list) else ""
