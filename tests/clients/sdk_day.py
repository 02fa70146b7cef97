"""A day's work with the published SDK that is on the path: one record of each type is created and read back through its models.

usage: sdk_day.py URL TOKEN_OF_INGESTOR TOKEN_OF_ADMIN
"""

import datetime
import sys

import scicat_sdk_py as sdk

url, ingestor, admin = sys.argv[1:]
NOW = datetime.datetime(2026, 3, 2, 9, 5, 10, tzinfo=datetime.timezone.utc)
OWNED = {"ownerGroup": "group1", "accessGroups": ["group3"]}
# Version 4 has neither names of samples, nor relations to anything without a pid.
IS_4 = not hasattr(sdk, "CreateRelationshipDto")


def client(token: str) -> sdk.ApiClient:
    return sdk.ApiClient(sdk.Configuration(host=url, access_token=token))


def main() -> None:
    api = client(ingestor)

    datasets = sdk.DatasetsApi(api)
    relation = (
        sdk.RelationshipClass(pid="10.1234/other", relationship="IsPartOf") if IS_4
        else sdk.CreateRelationshipDto(identifier="10.1234/other", relationship="IsPartOf")
    )
    raw = {
        **OWNED, "owner": "Ada", "contactEmail": "ada@example.org", "sourceFolder": "/data/1", "type": "raw",
        "creationTime": NOW, "principalInvestigator": "Ada", "creationLocation": "/DEMO", "proposalId": "p1", "datasetName": "d",
    }
    made = datasets.datasets_controller_create_v3(
        sdk.DatasetsControllerCreateV3Request(sdk.CreateRawDatasetObsoleteDto(**raw))
    )
    assert datasets.datasets_controller_find_by_id_v3(made.pid).principal_investigator == "Ada"
    assert [it.pid for it in datasets.datasets_controller_find_all_v3()] == [made.pid]
    assert datasets.datasets_controller_count_v3('{"where":{"type":"raw"}}').count == 1

    # Only its identifier is read back: what version 4 calls `pid` is the `identifier` of version 5.
    related = sdk.CreateRawDatasetObsoleteDto(**raw, relationships=[relation])
    answer = datasets.datasets_controller_create_v3_without_preload_content(
        sdk.DatasetsControllerCreateV3Request(related)
    )
    assert answer.status == 201 and '"identifier":"10.1234/other"' in answer.data.decode(), answer.data

    v4 = sdk.DatasetsV4Api(api)
    new = sdk.CreateDatasetDto(
        **OWNED, owner="Ada", contactEmail="ada@example.org", sourceFolder="/data/2", type="derived",
        creationTime=NOW, datasetName="reduced", inputDatasets=[made.pid],
    )
    reduced = v4.datasets_v4_controller_create_v4(new)
    assert v4.datasets_v4_controller_find_by_id_v4(reduced.pid).dataset_name == "reduced"

    block = sdk.CreateOrigDatablockDto(
        datasetId=made.pid, size=3, dataFileList=[sdk.DataFile(path="a.nxs", size=3, time=NOW)]
    )
    blocks = sdk.OrigdatablocksV4Api(api)
    # The model requires a `version`, which the original does not return either.
    answer = blocks.orig_datablocks_v4_controller_create_v4_without_preload_content(block)
    assert answer.status == 201, answer.data
    assert datasets.datasets_controller_find_by_id_v3(made.pid).number_of_files == 1

    sample = {"sampleId": "s1", **OWNED} | ({} if IS_4 else {"sampleName": "Si"})
    samples = sdk.SamplesApi(api)
    samples.samples_controller_create_v3(sdk.CreateSampleDto(**sample))
    assert samples.samples_controller_find_by_id_v3("s1").owner_group == "group1"
    assert len(samples.samples_controller_find_all_v3()) == 1

    proposals = sdk.ProposalsApi(api)
    proposals.proposals_controller_create_v3(
        sdk.CreateProposalDto(**OWNED, proposalId="p2", email="ada@example.org", title="Spheres")
    )
    assert proposals.proposals_controller_find_by_id_v3("p2").title == "Spheres"

    instruments = sdk.InstrumentsApi(client(admin))
    instruments.instruments_controller_create_v3(
        sdk.CreateInstrumentDto(pid="i1", uniqueName="DEMO-1", name="SAXS", customMetadata={})
    )
    assert [it.unique_name for it in instruments.instruments_controller_find_all_v3()] == ["DEMO-1"]

    attachments = sdk.AttachmentsV4Api(api)
    related = [sdk.AttachmentRelationshipsV4Dto(targetId=made.pid, targetType="dataset", relationType="is attached to")]
    attached = attachments.attachments_v4_controller_create_attachment_v4(
        sdk.CreateAttachmentV4Dto(
            **OWNED, caption="rings", isPublished=False, thumbnail="data:image/png;base64,AA", relationships=related
        )
    )
    assert attachments.attachments_v4_controller_find_one_v4(attached.aid).caption == "rings"

    jobs = sdk.JobsV4Api(api)
    job = jobs.jobs_v4_controller_create_v4(
        sdk.CreateJobDto(
            type="archive", ownerUser="ingestor", ownerGroup="group1", contactEmail="ada@example.org",
            jobParams={"datasetList": [{"pid": made.pid, "files": []}]},
        )
    )
    assert job.status_code == "jobSubmitted"
    # The model of answers requires `datasets` and `datasetDetails`, which are only returned with an include.
    answer = jobs.jobs_v4_controller_find_one_v4_without_preload_content(job.id)
    assert answer.status == 200 and b'"statusCode":"jobSubmitted"' in answer.data, answer.data

    published = sdk.PublishedDataV4Api(api)
    publication = published.published_data_v4_controller_create_v4(
        sdk.CreatePublishedDataV4Dto(title="Spheres", abstract="Warm ones.", datasetPids=[made.pid], metadata={})
    )
    assert published.published_data_v4_controller_find_one_v4(publication.doi).title == "Spheres"

    policies = sdk.PoliciesApi(client(admin))
    assert policies.policies_controller_find_all_v3()[0].owner_group == "group1"
    assert sdk.HealthApi(api).health_controller_check_v3().status == "ok"


main()
