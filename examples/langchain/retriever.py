"""Long-term memory as the retriever of a chain.

Needs `pip install "hiermem-core[langchain,embed]"`. The model here is a fake one; put yours in.
"""

import sys

from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from hiermem_core import HierMem
from langchain_hiermem import HierMemRetriever


def main(location: str = "./memory") -> None:
    """Answer a question from what was remembered."""
    with HierMem.open(location) as hiermem:
        alice = hiermem.tenant("alice")
        alice.remember("Prefers meetings in the morning", namespace="profile")
        alice.remember("Invoice 4711 is due in May", metadata={"year": 2026})
        retriever = HierMemRetriever(alice, k=2)

        for document in retriever.invoke("When should we meet?"):
            print(f"{document.metadata['hiermem_score']:.2f} {document.page_content}")
        print([one.page_content for one in retriever.invoke("invoice", filter={"year": 2026})])

        prompt = ChatPromptTemplate.from_template("Known: {known}\n\n{question}")
        model = FakeListChatModel(responses=["At nine."])
        inputs = {"known": retriever, "question": RunnablePassthrough()}
        print((inputs | prompt | model | StrOutputParser()).invoke("When should we meet?"))


if __name__ == "__main__":
    main(*sys.argv[1:])
