// Calls of the JavaScript client other than the life cycle of a deposit: node calls.cjs URL TOKEN COLLECTION TOKEN_OF_A_SUPERUSER
const assert = require('node:assert/strict')
const client = require('@iqss/dataverse-client-javascript')

const [url, token, parent, superToken] = process.argv.slice(2)
const as = (key) => client.ApiConfig.init(`${url}/api/v1`, 'api-key', key)

const metadata = (title) => ({
  metadataBlockValues: [
    {
      name: 'citation',
      fields: {
        title,
        author: [{ authorName: 'Gull, Ada' }],
        datasetContact: [{ datasetContactEmail: 'buoys@example.org' }],
        dsDescription: [{ dsDescriptionValue: 'Hourly.' }],
        subject: ['Other']
      }
    }
  ]
})

const collection = (alias, name) => ({
  alias,
  name,
  contacts: ['buoys@example.org'],
  type: 'LABORATORY',
  inheritMetadataBlocksFromParent: true,
  inheritFacetsFromParent: true
})

/** Uploads a file through the form, as the client's own upload wants a store with direct uploads. */
async function upload(dataset, name, text, type) {
  const form = new FormData()
  form.append('file', new Blob([text], { type }), name)
  const answer = await fetch(`${url}/api/datasets/${dataset}/add`, {
    method: 'POST',
    body: form,
    headers: { 'X-Dataverse-key': token }
  })
  const json = await answer.json()
  assert.equal(answer.status, 200, JSON.stringify(json))
  while ((await client.getDatasetLocks.execute(dataset)).length > 0) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return json.data.files[0].dataFile.id
}

async function information() {
  assert.equal(await client.getZipDownloadLimit.execute(), 104857600)
  const formats = await client.getAvailableDatasetMetadataExportFormats.execute()
  assert.ok(formats.OAI_ORE.isVisibleInUserInterface)
  assert.match(await client.getApplicationTermsOfUse.execute(), /Terms of Use/)
  for (const unset of [
    client.getMaxEmbargoDurationInMonths,
    client.getDatasetPublishPopupCustomText,
    client.getPublishDatasetDisclaimerText
  ]) {
    await assert.rejects(unset.execute(), /\[404\] Setting .* not found/)
  }
  assert.deepEqual((await client.getSearchServices.execute()).map((it) => it.name), ['solr'])
  assert.equal((await client.getMetadataBlockByName.execute('citation')).name, 'citation')
  assert.deepEqual(await client.getExternalTools.execute(), [])
  assert.match((await client.getCurrentApiToken.execute()).apiToken, /^[0-9a-f-]{36}$/)
  assert.ok((await client.getDatasetSummaryFieldNames.execute()).includes('dsDescription'))
  await assert.rejects(client.getCollection.execute('nothing'), /\[404\] Can't find dataverse/)
}

async function collections() {
  for (const alias of ['floats', 'moorings']) {
    await client.createCollection.execute(collection(alias, alias), parent)
    await client.publishCollection.execute(alias)
  }
  assert.equal((await client.getUserSelectableRoles.execute())[0].alias, 'admin')
  await client.updateCollection.execute('floats', collection('floats', 'Floats'))
  assert.equal((await client.getCollection.execute('floats')).name, 'Floats')
  const featured = await client.updateCollectionFeaturedItems.execute('floats', [
    { type: 'custom', content: '<b>New</b>', displayOrder: 0, keepFile: false },
    { type: 'collection', dvObjectIdentifier: 'moorings', displayOrder: 1 }
  ])
  assert.deepEqual(featured.map((it) => it.type), ['custom', 'collection'])
  await client.deleteCollectionFeaturedItem.execute(featured[0].id)
  assert.equal((await client.getCollectionFeaturedItems.execute('floats')).length, 1)
  await client.deleteCollectionFeaturedItems.execute('floats')
  assert.deepEqual(await client.getCollectionFeaturedItems.execute('floats'), [])
  const linkable = await client.getCollectionsForLinking.execute('collection', 'moorings', 'floats', false)
  assert.deepEqual(linkable.map((it) => it.alias), ['floats'])
  await client.linkCollection.execute('moorings', 'floats')
  const links = await client.getCollectionLinks.execute('floats')
  assert.deepEqual(links.linkedCollections.map((it) => it.alias), ['moorings'])
  await client.unlinkCollection.execute('moorings', 'floats')
}

async function datasets() {
  const made = await client.createDataset.execute(metadata('Float readings'), 'floats')
  const id = made.numericId
  await client.updateDataset.execute(id, metadata('Readings of floats'))
  const draft = await client.getDataset.execute(id)
  assert.equal(draft.metadataBlocks[0].fields.title, 'Readings of floats')
  await assert.rejects(
    client.updateDataset.execute(id, metadata('Too late'), '2017-01-01T00:00:00Z'),
    /is outdated/
  )
  await client.updateDatasetLicense.execute(id, { name: 'CC BY 4.0' })
  await client.updateTermsOfAccess.execute(id, {
    fileAccessRequest: true,
    termsOfAccessForRestrictedFiles: 'Ask.'
  })
  const terms = await client.getDataset.execute(id)
  assert.equal(terms.license.name, 'CC BY 4.0')
  assert.equal(terms.termsOfUse.termsOfAccess.termsOfAccessForRestrictedFiles, 'Ask.')
  assert.equal((await client.getDatasetStorageDriver.execute(id)).name, 'file1')
  assert.deepEqual(await client.getDatasetUploadLimits.execute(id), {})
  assert.equal((await client.getDatasetDownloadCount.execute(id)).downloadCount, 0)
  await client.publishDataset.execute(id, client.VersionUpdateType.MAJOR)
  const cited = await client.getDatasetCitationInOtherFormats.execute(id, '1.0', 'BibTeX')
  assert.match(cited.content, /Readings of floats/)
  await client.linkDataset.execute(id, 'moorings')
  assert.deepEqual(
    (await client.getDatasetLinkedCollections.execute(id)).map((it) => it.alias),
    ['moorings']
  )
  await client.unlinkDataset.execute(id, 'moorings')
  assert.ok((await client.getAllDatasetPreviews.execute(10, 0, 'floats')).totalDatasetCount >= 1)
  const mine = await client.getMyDataCollectionItems.execute([1, 6], ['dataset'], ['Published'], 10, 1)
  assert.ok(mine.items.some((it) => it.persistentId === made.persistentId))

  await client.updateDataset.execute(id, metadata('Readings of floats, corrected'))
  const difference = await client.getDatasetVersionDiff.execute(id, ':latest-published', ':draft')
  assert.equal(difference.metadataChanges[0].changed[0].fieldName, 'Title')
  await client.deleteDatasetDraft.execute(id)
  assert.equal((await client.getDataset.execute(id)).versionInfo.state, 'RELEASED')
  await client.deaccessionDataset.execute(id, '1.0', { deaccessionReason: 'Sunk.' })
  assert.equal((await client.getDataset.execute(id, '1.0', true)).versionInfo.state, 'DEACCESSIONED')
}

async function files() {
  const id = (await client.createDataset.execute(metadata('Mooring readings'), 'moorings')).numericId
  const table = await upload(id, 'table.csv', 'depth,degrees\n1,7\n2,6\n', 'text/csv')
  const note = await upload(id, 'note.txt', 'Calm.', 'text/plain')
  const tables = await client.getFileDataTables.execute(table)
  assert.deepEqual(tables[0].dataVariables.map((it) => it.name), ['depth', 'degrees'])
  await client.updateFileTabularTags.execute(table, ['Survey'], true)
  await client.updateFileCategories.execute(note, ['Documentation'], true)
  await client.updateFileMetadata.execute(note, { description: 'The weather', label: 'weather.txt' })
  const file = await client.getFile.execute(note)
  assert.equal(file.name, 'weather.txt')
  assert.deepEqual(file.categories, ['Documentation'])
  assert.equal((await client.getFileAndDataset.execute(note))[1].id, id)
  assert.match(await client.getFileCitation.execute(note, ':draft'), /weather.txt \[fileName\]/)
  await client.restrictFile.execute(note, { restrict: true, enableAccessRequest: true, termsOfAccess: 'Ask.' })
  assert.equal((await client.getFile.execute(note)).restricted, true)
  await client.restrictFile.execute(note, { restrict: false })
  assert.equal((await client.getFileUserPermissions.execute(note)).canEditOwnerDataset, true)
  assert.ok((await client.getDatasetAvailableCategories.execute(id)).includes('Documentation'))
  assert.ok((await client.getDatasetFilesTotalDownloadSize.execute(id)) > 0)
  await client.publishCollection.execute('moorings').catch(() => {})
  await client.publishDataset.execute(id, client.VersionUpdateType.MAJOR)
  assert.equal(await client.getFileDownloadCount.execute(note), 0)
  const summaries = await client.getFileVersionSummaries.execute(note)
  assert.equal(summaries.summaries[0].datasetVersion, '1.0')
  await client.deleteFile.execute(note)
  assert.equal(await client.isFileDeleted.execute(note), true)
  return { id, table }
}

async function guestbooks({ id, table }) {
  const guestbook = await client.createGuestbook.execute(
    {
      name: 'Visitors',
      enabled: true,
      emailRequired: false,
      nameRequired: true,
      institutionRequired: false,
      positionRequired: false,
      customQuestions: [{ question: 'Why?', required: true, displayOrder: 0, type: 'text', hidden: false }]
    },
    'moorings'
  )
  await client.setGuestbookEnabled.execute('moorings', guestbook, false)
  await client.setGuestbookEnabled.execute('moorings', guestbook, true)
  const kept = await client.getGuestbook.execute(guestbook)
  assert.equal(kept.customQuestions[0].question, 'Why?')
  assert.equal((await client.getGuestbooksByCollectionId.execute('moorings')).length, 1)
  await client.assignDatasetGuestbook.execute(id, guestbook)
  const response = {
    guestbookResponse: { name: 'Ada', answers: [{ id: kept.customQuestions[0].id, value: 'Work' }] }
  }
  for (const signed of [
    await client.submitGuestbookForDatafileDownload.execute(table, response),
    await client.submitGuestbookForDatafilesDownload.execute([table], response),
    await client.submitGuestbookForDatasetDownload.execute(id, response),
    await client.submitGuestbookForDatasetVersionDownload.execute(id, '1.0', response)
  ]) {
    assert.equal((await fetch(signed)).status, 200, signed)
  }
  await client.removeDatasetGuestbook.execute(id)
}

async function templates() {
  await client.createTemplate.execute({ name: 'Gauge', isDefault: true, fields: [], instructions: [] }, 'floats')
  const [template] = await client.getTemplatesByCollectionId.execute('floats')
  assert.deepEqual([template.name, template.isDefault], ['Gauge', true])
  await client.unsetTemplateAsDefault.execute('floats')
  await client.setTemplateAsDefault.execute(template.id, 'floats')
  assert.equal((await client.getTemplate.execute(template.id)).name, 'Gauge')
  await client.deleteTemplate.execute(template.id)
  assert.deepEqual(await client.getTemplatesByCollectionId.execute('floats'), [])
}

async function notices() {
  const { notifications } = await client.getAllNotificationsByUser.execute()
  assert.ok(notifications.length > 0)
  const before = await client.getUnreadNotificationsCount.execute()
  await client.markNotificationAsRead.execute(notifications[0].id)
  assert.equal(await client.getUnreadNotificationsCount.execute(), before - 1)
  await client.deleteNotification.execute(notifications[0].id)
  const [sent] = await client.submitContactInfo.execute({
    identifier: 'floats',
    subject: 'Tides',
    body: 'When?',
    fromEmail: 'ada@example.org'
  })
  assert.deepEqual([sent.subject, sent.body], ['Tides', 'When?'])
}

async function datasetTypes() {
  as(superToken)
  const made = await client.addDatasetType.execute({
    name: 'mooring',
    displayName: 'Mooring',
    linkedMetadataBlocks: [],
    availableLicenses: []
  })
  await client.linkDatasetTypeWithMetadataBlocks.execute(made.id, ['geospatial'])
  await client.setAvailableLicensesForDatasetType.execute(made.id, ['CC0 1.0'])
  const kept = await client.getDatasetAvailableDatasetType.execute('mooring')
  assert.deepEqual(kept.linkedMetadataBlocks, ['geospatial'])
  assert.equal((await client.getDatasetAvailableDatasetTypes.execute()).length, 2)
  await client.deleteDatasetType.execute(made.id)
  as(token)
}

async function tokens() {
  const made = await client.recreateCurrentApiToken.execute()
  as(made.apiToken)
  assert.ok(new Date(made.expirationDate) > new Date())
  await client.deleteCurrentApiToken.execute()
  await assert.rejects(client.getCurrentAuthenticatedUser.execute(), /\[401\] Bad API key/)
}

async function main() {
  as(token)
  await information()
  await collections()
  await datasets()
  await guestbooks(await files())
  await templates()
  await notices()
  await datasetTypes()
  await tokens()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
