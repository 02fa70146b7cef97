//! Names of settings. The original accepts these alone, so that a name that is spelled wrongly is noticed.

use crate::error::ApiError;

/// The names, without the colon, in order. From the original's API guide and its class of settings.
#[rustfmt::skip]
const NAMES: [&str; 166] = [
    "AllowApiTokenLookupViaApi", "AllowCors", "AllowCustomTermsOfUse", "AllowEnablingFilePIDsPerCollection",
    "AllowRemoteAuthSignUp", "AllowSignUp", "AllowUserManagementOfOrder", "AllowedCurationLabels",
    "AlwaysMuted", "AnonymizedFieldTypeNames", "ApiTermsOfUse", "ApplicationPrivacyPolicyUrl",
    "ApplicationTermsOfUse", "ArchiveOnlyIfEarlierVersionsAreArchived", "ArchiverClassName",
    "ArchiverSettings", "Authority", "BagGeneratorThreads", "BagItHandlerEnabled", "BagItLocalPath",
    "BagValidatorJobPoolSize", "BagValidatorJobWaitInterval", "BagValidatorMaxErrors",
    "BlockedApiEndpoints", "BlockedApiKey", "BlockedApiPolicy", "BuiltinUsersKey",
    "COARNotifyRelationshipAnnouncementTargets", "COARNotifyRelationshipAnnouncementTriggerFields",
    "CVocConf", "CategoryOrder", "ChronologicalDateFacets", "CloudEnvironmentName", "ComputeBaseUrl",
    "ContactFeedbackMessageSizeLimit", "ControlledVocabularyCustomJavaScript",
    "CreateDataFilesMaxErrorsToDisplay", "CustomDatasetSummaryFields", "CustomZipDownloadServiceUrl",
    "DRSArchiverConfig", "DataCaptureModuleUrl", "DataFileChecksumValidationSizeLimit", "DataFilePIDFormat",
    "DatasetChecksumValidationSizeLimit", "DatasetMetadataValidationFailureMsg",
    "DatasetMetadataValidatorScript", "DatasetPublishPopupCustomText",
    "DatasetPublishPopupCustomTextOnAllVersions", "DatasetSubmitForReviewPopupCustomText",
    "DataverseMetadataPublishValidationFailureMsg", "DataverseMetadataUpdateValidationFailureMsg",
    "DataverseMetadataValidatorScript", "DebugOAuthAccountType", "DebugShibAccountType",
    "DefaultAuthProvider", "DisableRootDataverseTheme", "DisableSolrFacets",
    "DisableSolrFacetsForGuestUsers", "DisableSolrFacetsWithoutJsession", "DisableUncheckedTypesFacet",
    "DisplayMDCMetrics", "DoiProvider", "DownloadMethods", "DuraCloudContext", "DuraCloudHost",
    "DuraCloudPort", "ExcludeEmailFromExport", "ExportInstallationAsDistributorOnlyWhenNotSet",
    "ExternalValidationAdminOverride", "FileCategories", "FileFixityChecksumAlgorithm", "FilePIDsEnabled",
    "FileValidationOnPublishEnabled", "FilesOnDatasetPageFromSolr", "FooterCopyright",
    "FooterCustomizationFile", "GetExternalSearchName", "GetExternalSearchUrl", "GlobusAppUrl",
    "GlobusBatchLookupSize", "GlobusPollingInterval", "GlobusSingleFileTransfer", "GoogleCloudBucket",
    "GoogleCloudProject", "GuestbookResponsesPageDisplayLimit", "GuidesBaseUrl", "GuidesVersion",
    "HandleAuthHandle", "HarvestingClientCallRateLimit", "HeaderCustomizationFile",
    "HomePageCustomizationFile", "IdentifierGenerationStyle", "IndependentHandleService",
    "InheritParentRoleAssignments", "InstallationName", "Languages", "LocalDataAccessPath",
    "LoginSessionTimeout", "LogoCustomizationFile", "MDCLogPath", "MDCStartDate",
    "MaxEmbargoDurationInMonths", "MaxFileUploadSizeInBytes", "MetadataLanguages",
    "MetricsCacheTimeoutMinutes", "MetricsUrl", "MinRetentionDurationInMonths",
    "MinutesUntilConfirmEmailTokenExpires", "MultipleUploadFilesLimit",
    "MyDataDoesNotUseSolrPermissionDocs", "NavbarAboutUrl", "NavbarGuidesUrl", "NavbarSupportUrl",
    "NeverMuted", "OAIServerEnabled", "OAuth2CallbackUrl", "OrderByFolder", "PVCharacterRules",
    "PVCustomPasswordResetAlertMessage", "PVDictionaries", "PVGoodStrength", "PVMaxLength", "PVMinLength",
    "PVNumberOfCharacteristics", "PVNumberOfConsecutiveDigitsAllowed", "PostExternalSearchName",
    "PostExternalSearchUrl", "PostPublishDatasetWorkflowId", "PrePublishDatasetWorkflowId", "Protocol",
    "ProvCollectionEnabled", "PublicInstall", "PublishDatasetDisclaimerText",
    "RateLimitingCapacityByTierAndAction", "RateLimitingDefaultCapacityTiers",
    "RepositoryStorageAbstractionLayerUrl", "S3ArchiverConfig", "ScrubMigrationData",
    "SearchApiRequiresToken", "SearchHighlightFragmentSize", "SendNotificationOnDatasetCreation",
    "SendNotificationOnDatasetMove", "ShibAffiliationAttribute", "ShibAffiliationOrder",
    "ShibAffiliationSeparator", "ShibAttributeCharacterSetConversionEnabled", "ShibPassiveLoginEnabled",
    "Shoulder", "ShowMuteOptions", "SignUpUrl", "SolrFullTextIndexing", "SolrHostColonPort",
    "SolrMaxFileSizeForFullTextIndexing", "StorageQuotaSizeInBytes",
    "StoreIngestedTabularFilesWithVarHeaders", "StyleCustomizationFile",
    "SubmitForReviewDatasetDisclaimerText", "SystemEmail", "TabularIngestSizeLimit", "UploadMethods",
    "UseStorageQuotas", "WebAnalyticsCode", "WebloaderUrl", "WorkflowsAdminIpWhitelist", "ZipDownloadLimit",
    "ZipUploadFilesLimit",
];

/// Separates the name of a setting from the language that it is for.
const OF_LANGUAGE: &str = "/lang/";

/// Checks the name of a setting: `:InstallationName`, or `:InstallationName/lang/fr`. Errors: 400.
pub(super) fn check(id: &str) -> Result<(), ApiError> {
    let (name, language) = match id.split_once(OF_LANGUAGE) {
        Some((name, language)) => (name, Some(language)),
        None => (id, None),
    };
    let Some(bare) = name.strip_prefix(':') else {
        return Err(ApiError::bad_request(format!(
            "Invalid key: the name of the setting {name} must begin with a colon, like :InstallationName"
        )));
    };
    if NAMES.binary_search(&bare).is_err() {
        return Err(ApiError::bad_request(format!(
            "Invalid key: there is no setting with the name {name}; is it spelled as in the documentation?"
        )));
    }
    let is_language = |it: &str| {
        let (code, region) = it.split_once(['-', '_']).unwrap_or((it, ""));
        code.len() == 2
            && code.bytes().all(|it| it.is_ascii_lowercase())
            && region.len() <= 8
            && region.bytes().all(|it| it.is_ascii_alphanumeric())
    };
    match language {
        Some(it) if !is_language(it) => Err(ApiError::bad_request(format!(
            "Invalid language {it} of the setting {name}: expected a code of two letters, like fr"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn only_known_names_and_languages_are_accepted() {
        for id in [":InstallationName", ":InstallationName/lang/fr", ":ApplicationTermsOfUse/lang/pt_BR"] {
            assert!(check(id).is_ok(), "{id}");
        }
        for id in [
            "",
            ":",
            "InstallationName",
            ":installationName",
            ":NoSuch",
            ":NoSuch/lang/fr",
            ":AllowSignUp/lang/french",
        ] {
            assert!(check(id).is_err(), "{id}");
        }
    }
}
