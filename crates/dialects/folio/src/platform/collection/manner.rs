//! Error styles of modules: those built on RMB answer 400 in plain text, those built on Spring 422 with a list of
//! errors.

use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::platform::app::Call;
use crate::platform::collection::declared::{Collection, Manner};
use crate::platform::error::{Answer, Fault, FolioError, Shape};
use crate::platform::values::parse_uuid;

/// Largest value of a Java `Integer`.
const INTEGER_MAX: i64 = 2_147_483_647;

/// Reports schema faults as Spring exceptions; faults from the module's own rules are left unchanged.
pub(crate) fn with_exceptions(error: FolioError) -> FolioError {
    match error {
        FolioError { status, shape: Shape::Errors(faults) } => {
            let excepted = |fault: Fault| {
                if !fault.code.starts_with("jakarta.validation.") {
                    return fault;
                }
                fault.ty("MethodArgumentNotValidException").code("validation-error")
            };
            FolioError::faults(status, faults.into_iter().map(excepted).collect())
        }
        error => error,
    }
}

fn invalid(fault: Fault) -> FolioError {
    FolioError::unprocessable(fault.code("VALIDATION_ERROR"))
}

/// Runs a handler after the module's checks on the request, and words its errors in the module's style.
pub(crate) async fn in_manner<F>(
    call: Call,
    collection: &'static Collection,
    is_body_wanted: bool,
    handler: impl FnOnce(Call) -> F,
) -> Answer
where
    F: Future<Output = Answer>,
{
    let manner = collection.manner;
    let answered = match manner.door(&call, is_body_wanted) {
        Ok(()) => handler(call).await,
        Err(refused) => return Err(refused),
    };
    answered.map_err(|error| manner.refused(collection, error))
}

impl Manner {
    /// Refuses requests that Spring refuses before a handler is reached.
    pub(crate) fn door(self, call: &Call, is_body_wanted: bool) -> Result<(), FolioError> {
        if self != Self::Spring {
            return Ok(());
        }
        let content_type = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if is_body_wanted && !content_type.is_empty() && !content_type.contains("json") {
            let message = r#"{"status":415,"error":"Unsupported Media Type"}"#;
            return Err(FolioError {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                shape: Shape::Json(message.into()),
            });
        }
        for (name, least) in [("limit", 1), ("offset", 0)] {
            let Some(text) = call.query.get(name).filter(|it| !it.is_empty()) else { continue };
            let number =
                text.trim().parse::<i64>().ok().filter(|it| -INTEGER_MAX - 1 <= *it && *it <= INTEGER_MAX);
            let fault = match number {
                Some(number) if least <= number => continue,
                Some(_) => Fault::new(format!("{name} must be greater than or equal to {least}"))
                    .ty("ConstraintViolationException"),
                None => Fault::new(format!(
                    "Failed to convert value of type 'java.lang.String' to required type 'java.lang.Integer'; For input string: \"{text}\""
                ))
                .ty("MethodArgumentTypeMismatchException"),
            };
            return Err(invalid(fault.with(name, text)));
        }
        let id = call.param("id");
        if !id.is_empty() && parse_uuid(id).is_none() {
            let message = format!(
                "Failed to convert value of type 'java.lang.String' to required type 'java.util.UUID'; Invalid UUID string: {id}"
            );
            return Err(invalid(Fault::new(message).ty("MethodArgumentTypeMismatchException")));
        }
        Ok(())
    }

    /// Words an error in the module's style.
    pub(crate) fn refused(self, collection: &Collection, error: FolioError) -> FolioError {
        match self {
            Self::Rmb => return error,
            Self::Links => return with_exceptions(error),
            Self::Spring => {}
        }
        let FolioError { status, shape } = error;
        match (status, shape) {
            (StatusCode::BAD_REQUEST, Shape::Text(text)) => {
                let is_missing =
                    text.contains("at line 1 column 0") || text.contains("EOF while parsing a value at");
                let message = if is_missing {
                    format!("Required request body is missing: {}", collection.list)
                } else {
                    text
                };
                invalid(Fault::new(message).ty("HttpMessageNotReadableException"))
            }
            (StatusCode::UNPROCESSABLE_ENTITY, Shape::Errors(faults)) => {
                let argument = |fault: Fault| {
                    let is_of_schema = fault.code.ends_with("NotNull.message");
                    let message = if is_of_schema {
                        let field = fault.parameters.first().map_or("", |it| it.0.as_str());
                        format!(
                            "Validation failed for argument [0] in {}: {field} must not be null",
                            collection.path
                        )
                    } else {
                        fault.message.clone()
                    };
                    Fault { message, code: "VALIDATION_ERROR".to_owned(), ..fault }
                };
                FolioError::faults(status, faults.into_iter().map(argument).collect())
            }
            (StatusCode::NOT_FOUND, Shape::Text(_)) => collection.not_found(""),
            (status, shape) => FolioError { status, shape },
        }
    }
}
