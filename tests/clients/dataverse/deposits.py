"""Bodies of new datasets."""


def dataset_json(title: str) -> dict:
    def field(name: str, value: str) -> dict:
        return {name: {"typeName": name, "multiple": False, "typeClass": "primitive", "value": value}}

    def compound(name: str, **children: str) -> dict:
        value = {key: it for child, text in children.items() for key, it in field(child, text).items()}
        return {"typeName": name, "multiple": True, "typeClass": "compound", "value": [value]}

    fields = [
        {"typeName": "title", "multiple": False, "typeClass": "primitive", "value": title},
        compound("author", authorName="Gull, Ada"),
        compound("datasetContact", datasetContactEmail="tides@example.org"),
        compound("dsDescription", dsDescriptionValue="Hourly."),
        {"typeName": "subject", "multiple": True, "typeClass": "controlledVocabulary", "value": ["Other"]},
    ]
    return {"datasetVersion": {"metadataBlocks": {"citation": {"fields": fields}}}}
