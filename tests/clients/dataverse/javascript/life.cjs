// The life cycle of a deposit through the JavaScript client: node life.cjs URL TOKEN COLLECTION
const assert = require('node:assert/strict')
const client = require('@iqss/dataverse-client-javascript')

const [url, token, parent] = process.argv.slice(2)
client.ApiConfig.init(`${url}/api/v1`, 'api-key', token)

async function main() {
  const user = await client.getCurrentAuthenticatedUser.execute()
  assert.equal(user.identifier, '@depositor')

  const alias = 'buoys'
  await client.createCollection.execute(
    {
      alias,
      name: 'Buoys',
      contacts: ['buoys@example.org'],
      type: 'LABORATORY',
      inheritMetadataBlocksFromParent: true,
      inheritFacetsFromParent: true
    },
    parent
  )
  await client.publishCollection.execute(alias)
  const collection = await client.getCollection.execute(alias)
  assert.equal(collection.name, 'Buoys')
  assert.equal(collection.isReleased, true)
  assert.equal((await client.getCollectionUserPermissions.execute(alias)).canAddDataset, true)
  assert.ok((await client.getCollectionFacets.execute(alias)).length > 0)
  const blocks = await client.getCollectionMetadataBlocks.execute(alias, true)
  assert.deepEqual(blocks.map((it) => it.name), ['citation'])
  assert.equal((await client.getAllMetadataBlocks.execute()).length, 7)
  assert.ok((await client.getAllFacetableMetadataFields.execute()).length > 0)

  const made = await client.createDataset.execute(
    {
      metadataBlockValues: [
        {
          name: 'citation',
          fields: {
            title: 'Buoy readings',
            author: [{ authorName: 'Gull, Ada' }],
            datasetContact: [{ datasetContactEmail: 'buoys@example.org' }],
            dsDescription: [{ dsDescriptionValue: 'Hourly.' }],
            subject: ['Other']
          }
        }
      ]
    },
    alias
  )
  const draft = await client.getDataset.execute(made.numericId)
  assert.equal(draft.versionInfo.state, 'DRAFT')
  assert.equal(draft.metadataBlocks[0].fields.title, 'Buoy readings')
  assert.deepEqual(await client.getDatasetLocks.execute(made.numericId), [])
  assert.equal((await client.getDatasetUserPermissions.execute(made.numericId)).canEditDataset, true)
  assert.match(await client.getDatasetCitation.execute(made.numericId), /Gull, Ada/)

  await client.publishDataset.execute(made.numericId, client.VersionUpdateType.MAJOR)
  const published = await client.getDataset.execute(made.persistentId)
  assert.equal(published.versionInfo.state, 'RELEASED')
  const counts = await client.getDatasetFileCounts.execute(made.numericId)
  assert.equal(counts.total, 0)
  const files = await client.getDatasetFiles.execute(made.numericId)
  assert.deepEqual(files.files, [])
  const items = await client.getCollectionItems.execute(alias)
  assert.deepEqual(items.items.map((it) => it.persistentId), [made.persistentId])
  assert.match(await client.getDataverseVersion.execute().then((it) => it.number), /^6\./)
  const licenses = await client.getAvailableStandardLicenses.execute()
  assert.deepEqual(licenses.map((it) => it.name), ['CC0 1.0', 'CC BY 4.0'])
  const summaries = await client.getDatasetVersionsSummaries.execute(made.numericId)
  assert.equal(summaries.summaries[0].summary, 'firstPublished')
  await assert.rejects(client.deleteCollection.execute(alias), /non-empty|403/)
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
