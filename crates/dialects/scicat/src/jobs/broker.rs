//! Sends messages about jobs to a RabbitMQ broker (AMQP 0-9-1), for consumers that archive and retrieve.
//!
//! Each message uses a new connection: jobs are rare, and so no connection has to be kept alive or checked. A
//! message counts as sent when the broker has confirmed it.

use std::time::Duration;

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::FieldTable;
use lapin::uri::{AMQPAuthority, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Connection, DefaultConnectionBuilder, ExchangeKind};

use crate::jobs::actions::Publish;
use crate::settings::Settings;

/// Delivery mode of messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;
/// Reply code for closing a connection normally.
const DONE: u16 = 200;

/// Sends a message to the configured broker and waits for its confirmation, for at most `timeout`.
///
/// Errors: what the broker, named by host and port, answered.
pub(super) async fn publish(
    settings: &Settings,
    to: &Publish,
    message: &[u8],
    timeout: Duration,
) -> Result<(), String> {
    let broker = format!("{}:{}", settings.rabbitmq_hostname, settings.rabbitmq_port);
    let sent = tokio::time::timeout(timeout, exchange(settings, to, message)).await;
    let timeout_ms = timeout.as_millis();
    match sent {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(format!("rabbitmq: {broker} did not take the message")),
        Ok(Err(error)) => Err(format!("rabbitmq: {broker}: {error}")),
        Err(_) => Err(format!("rabbitmq: {broker} did not answer within {timeout_ms} ms")),
    }
}

/// Says whether the broker accepted the message.
async fn exchange(settings: &Settings, to: &Publish, message: &[u8]) -> lapin::Result<bool> {
    pinakes_tls::provider();
    let scheme = if settings.rabbitmq_tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP };
    let uri = AMQPUri {
        scheme,
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: settings.rabbitmq_username.clone(),
                password: settings.rabbitmq_password.reveal().to_owned(),
            },
            host: settings.rabbitmq_hostname.clone(),
            port: settings.rabbitmq_port,
        },
        ..AMQPUri::default()
    };
    let authorities = Some(settings.rabbitmq_authorities.clone()).filter(|it| !it.is_empty());
    let tls = OwnedTLSConfig { identity: None, cert_chain: authorities };
    let connection = DefaultConnectionBuilder::new()?.with_uri(uri).with_tls_config(tls).connect().await?;
    let sent = send(&connection, to, message).await;
    let closed = connection.close(DONE, "done".into()).await;
    if let (Ok(_), Err(error)) = (&sent, closed) {
        tracing::debug!(%error, "job action: rabbitmq: the connection was not closed in order");
    }
    sent
}

async fn send(connection: &Connection, to: &Publish, message: &[u8]) -> lapin::Result<bool> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let (exchange, queue, key) = (to.exchange.as_str(), to.queue.as_str(), to.key.as_str());
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.into(), ExchangeKind::Topic, durable, FieldTable::default()).await?;
    channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), FieldTable::default()).await?;
    let options = QueueBindOptions::default();
    channel.queue_bind(queue.into(), exchange.into(), key.into(), options, FieldTable::default()).await?;
    // Mandatory: a message that cannot be routed to a queue is returned.
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into());
    let confirmed =
        channel.basic_publish(exchange.into(), key.into(), options, message, properties).await?.await?;
    Ok(confirmed.is_ack() && confirmed.take_message().is_none())
}
