"""The calls of scicat-cli and of archive systems, in their order and spelling: it expects 201 on login, uses capitals in paths,
and sends a bare token in the query."""

from urllib.parse import quote

import requests
from running import PATIENCE_S


class Cli:
    """Sends a request as scicat-cli does."""

    def __init__(self, server, username: str) -> None:
        self.base, self.token = server.v3, server.token(username)

    def ask(self, method: str, path: str, body=None, status: int = 200):
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = requests.request(method, f"{self.base}/{path}", json=body, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


DATASET = {
    "type": "raw", "ownerGroup": "group1", "owner": "Ada", "contactEmail": "ada@example.org", "sourceFolder": "/data/7",
    "creationTime": "2026-03-02T09:05:10Z", "principalInvestigator": "Ada", "creationLocation": "/PSI/SLS/TOMCAT",
    "numberOfFiles": 1, "size": 12,
}


def test_datasets_are_ingested_and_archived(server):
    login = {"username": "ingestor", "password": server.password("ingestor")}
    assert requests.post(f"{server.v3}/auth/login", json=login, timeout=PATIENCE_S).status_code == 201
    ingestor, archivist, admin = (Cli(server, it) for it in ["ingestor", "archivist", "admin"])
    self = ingestor.ask("GET", "users/my/self")
    identity = ingestor.ask("GET", f"users/{self['id']}/userIdentity")
    assert "group1" in identity["profile"]["accessGroups"] and ingestor.ask("GET", "users/my/identity")
    assert ingestor.ask("GET", 'proposals?filters={"where":{"ownerGroup":"group1"}}') == []

    assert ingestor.ask("POST", "datasets/isValid", DATASET)["valid"]
    pid = ingestor.ask("POST", "datasets", DATASET, 201)["pid"]
    path = quote(pid, safe="")
    block = {
        "datasetId": pid, "size": 12,
        "dataFileList": [{"path": "a.h5", "size": 12, "time": "2026-03-02T09:05:10Z", "uid": "u", "gid": "g", "perm": "rw"}],
    }
    ingestor.ask("POST", "origdatablocks", block, 201)
    attachment = {"caption": "c", "ownerGroup": "group1", "thumbnail": "data:image/png;base64,AA"}
    bare = f"{server.v3}/Datasets/{path}/attachments?access_token={ingestor.token}"
    assert requests.post(bare, json=attachment, timeout=PATIENCE_S).status_code == 201

    wanted = f'{{"where":{{"pid":{{"inq":["{pid}"]}},"datasetlifecycle.archivable":true}},"fields":{{"pid":1,"size":1}}}}'
    found = ingestor.ask("GET", f"datasets?filter={wanted}")
    assert [(it["pid"], it["size"]) for it in found] == [(pid, 24)]
    assert admin.ask("GET", 'Policies?filter={"where":{"ownerGroup":"group1"}}')[0]["ownerGroup"] == "group1"

    job = {
        "type": "archive", "emailJobInitiator": "ada@example.org", "jobParams": {"tapeCopies": "one", "username": "ingestor"},
        "datasetList": [{"pid": pid, "files": []}], "jobStatusMessage": "jobSubmitted",
    }
    made = ingestor.ask("POST", "jobs", job, 201)
    assert ingestor.ask("GET", f"Jobs/{made['id']}")["jobStatusMessage"] == "jobSubmitted"
    admin.ask("PATCH", f"Jobs/{made['id']}", {"jobStatusMessage": "finishedSuccessful"})

    lifecycle = {"archivable": False, "retrievable": True, "archiveStatusMessage": "datasetOnArchiveDisk"}
    assert ingestor.ask("PATCH", f"Datasets/{path}/datasetlifecycle", lifecycle)["retrievable"] is True
    package = {
        "datasetId": pid, "archiveId": "tape/1", "size": 12, "packedSize": 9, "version": "1",
        "dataFileList": block["dataFileList"],
    }
    ingestor.ask("POST", "Datablocks", package, 201)
    assert len(ingestor.ask("GET", f'Datablocks?filter={{"where":{{"datasetId":"{pid}"}}}}')) == 1
    ingestor.ask("POST", "jobs", job | {"type": "retrieve", "jobParams": {"destinationPath": "/"}}, 201)

    for collection in ["datablocks", "origdatablocks", "attachments"]:
        assert archivist.ask("GET", f"Datasets/{path}/{collection}/count", status=403)
        assert ingestor.ask("GET", f"Datasets/{path}/{collection}/count") == {"count": 1}
        assert archivist.ask("DELETE", f"Datasets/{path}/{collection}") == {"count": 1}
    archivist.ask("DELETE", f"Datasets/{path}")
    ingestor.ask("GET", f"Datasets/{path}", status=404)


def test_an_ingestor_knows_what_is_there(server):
    """scicat-ingestor checks the health, then whether a file was ingested before, by its metadata."""
    ingestor = Cli(server, "ingestor")
    assert ingestor.ask("GET", "health")["status"] == "ok"
    ingestor.ask("GET", "datasets/none", status=404)
    metadata = {"file_name": {"value": "coda_1.hdf", "unit": "", "human_name": "File"}}
    pid = ingestor.ask("POST", "datasets", DATASET | {"scientificMetadata": metadata}, 201)["pid"]
    where = '{"where":{"scientificMetadata.file_name.value":"coda_1.hdf"}}'
    found = ingestor.ask("GET", f"datasets?filter={where}")
    assert [(it["pid"], it["_id"]) for it in found] == [(pid, pid)]
    sample = {"sampleName": "Si", "ownerGroup": "group1", "description": "25 nm", "proposalId": "p1"}
    made = ingestor.ask("POST", "samples", sample, 201)
    found = ingestor.ask("GET", 'samples?filter={"where":{"description":"25 nm","proposalId":"p1"}}')
    assert [it["sampleId"] for it in found] == [made["sampleId"]]
