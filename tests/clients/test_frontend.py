"""The requests of SciCat's frontend at its start and while a user browses, sent to `pinakes demo` from a page of another host."""

import json
import signal
import subprocess
from urllib.parse import quote

import pytest
import requests
from running import PATIENCE_S, PINAKES, printed_url

PAGE = {"Origin": "https://frontend.example.org"}
FACETS = ["type", "creationLocation", "ownerGroup", "keywords", "creationTime"]


@pytest.fixture(scope="module")
def demo():
    process = subprocess.Popen(
        [PINAKES, "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield printed_url(process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


def get(url: str, path: str, token: str = "", **parameters):
    """Returns the answer to a GET request of a page; parameters are sent as JSON."""
    query = {name: it if isinstance(it, str) else json.dumps(it) for name, it in parameters.items()}
    headers = PAGE | ({"Authorization": f"Bearer {token}"} if token else {})
    answer = requests.get(f"{url}/api/{path}", params=query, headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
    assert answer.headers["Access-Control-Allow-Origin"] == "*", path
    return answer.json() if answer.content else None


def test_it_starts(demo):
    config, theme = get(demo, "v3/admin/config"), get(demo, "v3/admin/theme")
    assert config["facility"] == "DEMO" and config["defaultDatasetsListSettings"]["columns"]
    assert config["mainMenu"]["nonAuthenticatedUser"]["datasets"] and config["accessTokenPrefix"] == "Bearer "
    assert theme["name"] and theme["properties"]["--theme-primary-default"]
    assert get(demo, "v3/auth/whoami") is None
    for name in ["frontendConfig", "frontendTheme"]:
        assert get(demo, f"v3/runtime-config/{name}")["data"]
    asked = {
        **PAGE, "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "authorization,content-type,if-unmodified-since",
    }
    allowed = requests.options(f"{demo}/api/v3/datasets", headers=asked, timeout=PATIENCE_S)
    assert allowed.status_code == 204 and "PATCH" in allowed.headers["Access-Control-Allow-Methods"]
    assert "if-unmodified-since" in allowed.headers["Access-Control-Allow-Headers"].lower()


def test_anybody_looks_around(demo):
    limits = {"skip": 0, "limit": 25, "order": "createdAt:desc"}
    fields = {"mode": {}, "isPublished": True}
    rows = get(demo, "v3/datasets/fullquery", fields=fields, limits=limits)
    assert 0 < len(rows) <= 25 and all(it["isPublished"] for it in rows)
    (facets,) = get(demo, "v3/datasets/fullfacet", fields=fields, facets=FACETS)
    assert facets["all"][0]["totalSets"] >= len(rows) and facets["type"][0]["count"] and set(FACETS) < set(facets)
    assert get(demo, "v3/datasets/metadataKeys", fields=fields)
    pid = quote(rows[0]["pid"], safe="")
    assert get(demo, f"v3/datasets/{pid}")["pid"] == rows[0]["pid"]
    for below in ["origdatablocks", "datablocks", "attachments", "thumbnail"]:
        get(demo, f"v3/datasets/{pid}/{below}")
    assert get(demo, "v3/instruments") and get(demo, "v4/publisheddata", filter={"limits": {"limit": 25}})
    assert get(demo, "v4/publisheddata/config")["metadataSchema"] is not None


def test_somebody_logs_in(demo):
    body = {"username": "ada", "password": "ada-demo"}
    answer = requests.post(f"{demo}/api/v3/auth/login", json=body, headers=PAGE, timeout=PATIENCE_S)
    assert answer.status_code == 201
    token, user_id = answer.json()["access_token"], answer.json()["userId"]
    assert get(demo, "v3/users/my/self", token)["username"] == "ada"
    for below in ["", "/userIdentity", "/settings"]:
        assert get(demo, f"v3/users/{user_id}{below}", token)
    assert get(demo, "v3/useridentities/findOne", token, filter={"where": {"userId": user_id}})["userId"] == user_id
    headers = PAGE | {"Authorization": f"Bearer {token}"}
    settings = {"fe_dataset_table_columns": [{"name": "pid", "order": 1, "enabled": True}]}
    changed = requests.patch(
        f"{demo}/api/v3/users/{user_id}/settings/external", json=settings, headers=headers, timeout=PATIENCE_S
    )
    assert changed.status_code == 200 and changed.json()["externalSettings"] == settings, changed.text
    assert requests.post(f"{demo}/api/v3/users/jwt", headers=headers, timeout=PATIENCE_S).json()["jwt"]

    rows = get(demo, "v3/datasets/fullquery", token, fields={"ownerGroup": ["p1234"]}, limits={"limit": 5})
    assert rows
    pid, limits = rows[0]["pid"], {"skip": 0, "limit": 25}
    files = get(demo, "v3/origdatablocks/fullquery/files", token, fields={"datasetId": pid}, limits=limits)
    ((count,),) = (it["all"] for it in get(demo, "v3/origdatablocks/fullfacet/files", token, fields={"datasetId": pid}))
    assert count["totalSets"] >= len(files) > 0 and files[0]["dataFileList"]["path"]
    for path in ["proposals/fullquery", "samples/fullquery", "jobs/fullquery"]:
        get(demo, f"v3/{path}", token, fields={}, limits=limits)
    for path in ["v3/proposals", "v3/samples", "v3/jobs", "v3/logbooks", "v4/metadatakeys"]:
        get(demo, path, token)
    # If a browser cannot send the header, the token is in the query.
    assert get(demo, "v3/auth/whoami", access_token=f"Bearer {token}")["username"] == "ada"
