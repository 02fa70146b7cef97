//! Sending notices: rendered from templates and policies, and sent to a mail server over SMTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use http::StatusCode;
use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

const POINT: &str = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f";
const USER: &str = "00000000-0000-4000-8000-000000000021";
const TEMPLATE: &str = "00000000-0000-4000-8000-0000000000a1";

/// Runs a mail server that accepts one or several mails per connection, and passes on the dialogue of each.
fn mail_server() -> Result<(u16, mpsc::Receiver<String>), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (mails, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Err(error) = take_mails(stream, &mails) {
                let _ = mails.send(format!("fault: {error}"));
            }
        }
    });
    Ok((port, received))
}

fn take_mails(mut stream: TcpStream, mails: &mpsc::Sender<String>) -> std::io::Result<()> {
    let reader = BufReader::new(stream.try_clone()?);
    let (mut said, mut in_data) = (String::new(), false);
    write!(stream, "220 here\r\n")?;
    for line in reader.lines() {
        let line = line?;
        said.push_str(&line);
        said.push('\n');
        let answer = match line.as_str() {
            "." if in_data => {
                in_data = false;
                // If the receiver is gone, nobody needs the mail.
                let _ = mails.send(std::mem::take(&mut said));
                "250 taken"
            }
            _ if in_data => continue,
            "DATA" => {
                in_data = true;
                "354 go on"
            }
            "QUIT" => {
                write!(stream, "221 bye\r\n")?;
                break;
            }
            _ => "250 ok",
        };
        write!(stream, "{answer}\r\n")?;
    }
    Ok(())
}

/// Sends a request and expects a status.
async fn ask(server: &Server, request: &str, expected: StatusCode) -> Result<Value, Failure> {
    let (status, _, body) = server.ask(request).await?;
    if status != expected {
        return Err(format!("{request}: {status} {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

async fn made(server: &Server, path: &str, body: &str) -> Result<Value, Failure> {
    ask(server, &format!("admin POST {path}\n{body}"), StatusCode::CREATED).await
}

async fn done(server: &Server, path: &str, body: &str) -> Result<(), Failure> {
    ask(server, &format!("admin POST {path}\n{body}"), StatusCode::NO_CONTENT).await.map(drop)
}

/// Creates a library whose notice policy reports check-outs, and reminds two days before and each day after the due
/// date.
async fn library(server: &Server) -> Result<(), Failure> {
    let instance = "00000000-0000-4000-8000-000000000001";
    let holdings = "00000000-0000-4000-8000-000000000002";
    for (path, body) in [
        ("/instance-storage/instances", format!(r#"{{"id": "{instance}", "source": "FOLIO", "title": "Bread & Roses", "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f"}}"#)),
        ("/holdings-storage/holdings", format!(r#"{{"id": "{holdings}", "instanceId": "{instance}", "permanentLocationId": "fcd64ce1-6995-48f0-840e-89ffa2288371", "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264"}}"#)),
        ("/item-storage/items", format!(r#"{{"holdingsRecordId": "{holdings}", "barcode": "b1", "status": {{"name": "Available"}}, "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892", "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27"}}"#)),
        ("/item-storage/items", format!(r#"{{"holdingsRecordId": "{holdings}", "barcode": "b2", "status": {{"name": "Available"}}, "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892", "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27"}}"#)),
        ("/users", format!(r#"{{"id": "{USER}", "username": "ann", "barcode": "ann", "active": true, "patronGroup": "3684a786-6671-4268-8ed0-9db82ebca60b", "personal": {{"lastName": "Lee", "firstName": "Ann", "email": "ann@example.org"}}}}"#)),
        ("/templates", format!(r#"{{"id": "{TEMPLATE}", "active": true, "category": "Loan", "outputFormats": ["text/html"], "templateResolver": "mustache", "localizedTemplates": {{"en": {{"header": "Your loans, {{{{user.firstName}}}}", "body": "{{{{#loans}}}}[{{{{item.title}}}} {{{{item.barcode}}}} due {{{{loan.dueDate}}}}]{{{{/loans}}}}{{{{^loans}}}}Due {{{{loan.dueDate}}}}: {{{{item.barcode}}}}{{{{/loans}}}}"}}}}}}"#)),
        ("/patron-notice-policy-storage/patron-notice-policies", format!(r#"{{"id": "00000000-0000-4000-8000-0000000000a2", "name": "Tells", "active": true, "loanNotices": [
            {{"templateId": "{TEMPLATE}", "format": "Email", "frequency": "One time", "realTime": false, "sendOptions": {{"sendHow": "Upon At", "sendWhen": "Check out"}}}},
            {{"templateId": "{TEMPLATE}", "format": "Email", "frequency": "One time", "realTime": false, "sendOptions": {{"sendHow": "Before", "sendWhen": "Due date", "sendBy": {{"duration": 2, "intervalId": "Days"}}}}}},
            {{"templateId": "{TEMPLATE}", "format": "Email", "frequency": "Recurring", "realTime": false, "sendOptions": {{"sendHow": "After", "sendWhen": "Due date", "sendBy": {{"duration": 1, "intervalId": "Days"}}, "sendEvery": {{"duration": 1, "intervalId": "Days"}}}}}}
        ]}}"#).replace('\n', " ")),
    ] {
        made(server, path, &body).await?;
    }
    let rules = r#"{"rulesAsText": "priority: t, s, c, b, a, m, g fallback-policy: l d9cd0bed-1b49-4b5e-a7bd-064b8d177231 r 334e5a9e-94f9-4673-8d1d-ab552863886b n 00000000-0000-4000-8000-0000000000a2 o cd3f6cac-fa17-4079-9fae-2fb28e521412 i ed892c0e-52e0-4cd9-8133-c0ef07b4a709"}"#;
    ask(server, &format!("admin PUT /circulation/rules\n{rules}"), StatusCode::NO_CONTENT).await.map(drop)
}

async fn check_out(server: &Server, book: &str) -> Result<Value, Failure> {
    let body = format!(r#"{{"itemBarcode": "{book}", "userBarcode": "ann", "servicePointId": "{POINT}"}}"#);
    made(server, "/circulation/check-out-by-barcode", &body).await
}

/// Returns the mails received so far, in order.
fn all(received: &mpsc::Receiver<String>) -> Vec<String> {
    received.try_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notices_are_mailed_once() -> Result<(), Failure> {
    const DAY_MS: i64 = 86_400_000;
    for engine in Engine::all() {
        let (port, received) = mail_server()?;
        let server = Server::start(engine).await?;
        library(&server).await?;
        let deliver = || done(&server, "/delayedTask/retryFailedEmails", "{}");
        let due = || done(&server, "/circulation/loan-scheduled-notices-processing", "{}");

        // Without a mail server messages wait.
        check_out(&server, "b1").await?;
        check_out(&server, "b2").await?;
        let ended = format!(r#"{{"endSessions": [{{"patronId": "{USER}", "actionType": "Check-out"}}]}}"#);
        done(&server, "/circulation/end-patron-action-session", &ended).await?;
        deliver().await?;
        let waiting = ask(&server, "admin GET /email", StatusCode::OK).await?;
        assert_eq!(waiting["totalRecords"], 1, "{engine:?}: {waiting}");
        assert_eq!(waiting["emailEntity"][0]["status"], "NEW", "{engine:?}: {waiting}");

        let smtp = format!(
            r#"{{"host": "127.0.0.1", "port": {port}, "username": "", "password": "", "ssl": false, "from": "library@example.org"}}"#
        );
        made(&server, "/smtp-configuration", &smtp).await?;
        deliver().await?;
        // The timer's thread may run at the same time: one of them sends it.
        deliver().await?;
        let mails = all(&received);
        assert_eq!(mails.len(), 1, "{engine:?}: {mails:?}");
        for part in [
            "Subject: Your loans, Ann",
            "From: library@example.org",
            "Bread &amp; Roses b1 due Apr 2, 2026",
            "b2 due",
        ] {
            let mail = mails[0].replace("=\n", "");
            assert!(mail.contains(part), "{engine:?}: {part} in {mail}");
        }
        let sent = ask(&server, "admin GET /email", StatusCode::OK).await?;
        assert_eq!(sent["emailEntity"][0]["status"], "DELIVERED", "{engine:?}: {sent}");

        // Two days before the due date, once for each loan, however often the timer runs.
        server.clock.advance_ms(58 * DAY_MS + 14 * 3_600_000);
        due().await?;
        due().await?;
        deliver().await?;
        let mails = all(&received);
        assert_eq!(mails.len(), 2, "{engine:?}: {mails:#?}");
        // There are no more reminders for a returned book; the other one gets one each day.
        let back = format!(
            r#"{{"itemBarcode": "b2", "servicePointId": "{POINT}", "checkInDate": "2026-03-31T10:00:00Z"}}"#
        );
        ask(&server, &format!("admin POST /circulation/check-in-by-barcode\n{back}"), StatusCode::OK).await?;
        for _ in 0..2 {
            server.clock.advance_ms(2 * DAY_MS);
            due().await?;
            deliver().await?;
        }
        let mails = all(&received);
        assert_eq!(mails.len(), 1, "{engine:?}: {mails:?}");
        assert!(mails[0].contains("Due Apr 2, 2026: b1"), "{engine:?}: {mails:?}");
        let planned =
            ask(&server, "admin GET /scheduled-notice-storage/scheduled-notices", StatusCode::OK).await?;
        assert_eq!(planned["totalRecords"], 1, "{engine:?}: {planned}");
        assert_eq!(server.tenant("diku")?.check()?, Vec::<String>::new(), "{engine:?}");
    }
    Ok(())
}
