"""A client generated from the OpenAPI document has the published SDK's names, and creates and reads records."""

import datetime
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import scicat_sdk_py
from openapi_spec_validator import validate
from running import PATIENCE_S

PACKAGE = "generated_client"
# Events are not supported here.
ABSENT_APIS = {"EventsApi"}
# Models that no operation of the SDK accepts or returns, and those of a failing health check.
UNUSED_MODELS = {
    "FullFacetFilters", "ProposalCountFilters",
    "HealthControllerCheckV3200ResponseInfoValue", "HealthControllerCheckV3503Response",
}


def operations(package) -> dict[str, dict[str, list[str]]]:
    """Returns parameters by operation by class of the package's API."""
    found = {}
    for name, api in inspect.getmembers(package, inspect.isclass):
        if not name.endswith("Api"):
            continue
        methods = inspect.getmembers(api, inspect.isfunction)
        found[name] = {
            method: [it for it in inspect.signature(function).parameters if not it.startswith("_")]
            for method, function in methods
            if method.endswith(("_v3", "_v4"))
        }
    return found


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    document = requests.get(f"{server.url}/explorer-json", timeout=PATIENCE_S)
    assert document.status_code == 200
    validate(document.json())
    (folder / "document.json").write_bytes(document.content)
    generator = Path(sys.executable).parent / "openapi-generator-cli"
    made = subprocess.run(
        [generator, "generate", "-g", "python", "-i", folder / "document.json", "-o", folder / "client"]
        + ["--package-name", PACKAGE],
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder / "client"))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(folder / "client"))


def test_names_are_those_of_the_published_sdk(generated):
    ours, published = operations(generated), operations(scicat_sdk_py)
    assert published, "the published SDK has no operations"
    missing, n_compared = [], 0
    for api, methods in published.items():
        if api in ABSENT_APIS:
            continue
        for method, parameters in methods.items():
            n_compared += 1
            if method not in ours.get(api, {}):
                missing.append(f"{api}.{method}")
                continue
            lacking = set(parameters) - set(ours[api][method])
            missing += [f"{api}.{method}({it})" for it in sorted(lacking)]
    assert not missing, f"{len(missing)} names:\n" + "\n".join(missing)
    assert 200 < n_compared


def test_models_are_those_of_the_published_sdk(generated):
    def models(package):
        return {name for name, it in inspect.getmembers(package, inspect.isclass) if hasattr(it, "from_json")}

    missing = models(scicat_sdk_py) - models(generated) - UNUSED_MODELS
    assert not missing, sorted(missing)


def test_it_creates_and_reads_records(generated, server):
    configuration = generated.Configuration(host=server.url, access_token=server.token("ingestor"))
    with generated.ApiClient(configuration) as client:
        datasets = generated.DatasetsV4Api(client)
        new = generated.CreateDatasetDto(
            ownerGroup="group1", owner="o", contactEmail="a@b.ch", sourceFolder="/data/1", type="raw",
            creationTime=datetime.datetime(2020, 1, 15, 8, tzinfo=datetime.timezone.utc), datasetName="generated",
            scientificMetadata={"temperature": {"value": 20, "unit": "celsius"}},
        )
        made = datasets.datasets_v4_controller_create_v4(new)
        assert isinstance(made, generated.OutputDatasetDto)
        read = datasets.datasets_v4_controller_find_by_id_v4(made.pid)
        assert (read.dataset_name, read.created_by) == ("generated", "ingestor")
        assert read.creation_time == new.creation_time
        listed = datasets.datasets_v4_controller_find_all_v4(filter='{"where":{"ownerGroup":"group1"}}')
        assert [it.pid for it in listed] == [made.pid]

        raw = generated.CreateRawDatasetObsoleteDto(
            ownerGroup="group1", owner="o", contactEmail="a@b.ch", sourceFolder="/data/2", type="raw",
            creationTime=new.creation_time, principalInvestigator="P I", creationLocation="/ESS",
        )
        old = generated.DatasetsApi(client)
        made = old.datasets_controller_create_v3(generated.DatasetsControllerCreateV3Request(raw))
        read = old.datasets_controller_find_by_id_v3(made.pid)
        assert (read.principal_investigator, read.type) == ("P I", "raw")

        blocks = generated.OrigdatablocksV4Api(client)
        file = generated.DataFile(path="a.nxs", size=3, time=new.creation_time)
        block = generated.CreateOrigDatablockDto(datasetId=made.pid, size=3, dataFileList=[file])
        assert blocks.orig_datablocks_v4_controller_create_v4(block).data_file_list[0].path == "a.nxs"

        samples = generated.SamplesApi(client)
        sample = samples.samples_controller_create_v3(
            generated.CreateSampleDto(ownerGroup="group1", sampleName="Si", sampleId="s1")
        )
        assert samples.samples_controller_find_by_id_v3("s1").sample_name == sample.sample_name == "Si"
