//! Information from the headers of added files about the files and their dataset.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// Test files of the crate that parses them.
const OCEAN: &[u8] = include_bytes!("../../../../formats/arrays/tests/files/ocean.nc");
const OCEAN_XML: &str = include_str!("../../../../formats/arrays/tests/files/ocean.nc.xml");

fn fits() -> Vec<u8> {
    let cards = |list: &[&str]| {
        let mut block: Vec<u8> = list.iter().flat_map(|it| format!("{it:<80}").into_bytes()).collect();
        block.resize(2_880, b' ');
        block
    };
    let image = [
        "SIMPLE  =                    T",
        "BITPIX  =                    8",
        "NAXIS   =                    2",
        "NAXIS1  =                    3",
        "NAXIS2  =                    1",
        "INSTRUME= 'FOS     '",
        "TARGNAME= 'NGC4151 '",
        "DATE-OBS= '22/04/93'",
        "END",
    ];
    let table = ["XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 12", "NAXIS2  = 0", "END"];
    [cards(&image), vec![0; 2_880], cards(&table)].concat()
}

/// Returns the values of a field of the draft, as JSON.
async fn field(server: &Server, key: &str, dataset: i64, block: &str, name: &str) -> Result<Value, Failure> {
    let got = server.get(key, &format!("/api/datasets/{dataset}/versions/:draft")).await?.json();
    let fields = got["data"]["metadataBlocks"][block]["fields"].as_array().cloned().unwrap_or_default();
    Ok(fields.into_iter().find(|it| it["typeName"] == name).map_or(Value::Null, |it| it["value"].clone()))
}

async fn use_blocks(server: &Server, key: &str, alias: &str, blocks: &Value) -> Result<(), Failure> {
    let got = server.json(key, "POST", &format!("/api/dataverses/{alias}/metadatablocks"), blocks).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fits_fills_fields_of_blocks_that_are_used() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "stars").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let before = server.upload(&fiona, &add, "a.fits", &fits(), &json!({})).await?.json();
    assert_eq!(
        before["data"]["files"][0]["description"],
        "FITS file, 2 HDUs total:\nThe primary HDU; 1 Table HDU(s) 1 Image HDU(s); \nThe following recognized \
         metadata keys have been found in the FITS file:\nNAXIS; INSTRUME; NAXIS1; NAXIS0; TARGNAME; DATE-OBS; \n"
    );
    assert_eq!(field(&server, &fiona, dataset, "astrophysics", "astroType").await?, Value::Null);
    use_blocks(&server, &fiona, "stars", &json!(["citation", "astrophysics"])).await?;
    let said = json!({"description": "What I say"});
    let added = server.upload(&fiona, &add, "b.fits", &fits(), &said).await?.json();
    assert_eq!(added["data"]["files"][0]["description"], "What I say");
    let of = async |name: &str| field(&server, &fiona, dataset, "astrophysics", name).await;
    assert_eq!(of("astroType").await?, json!(["Image"]));
    assert_eq!(of("astroInstrument").await?, json!(["FOS"]));
    assert_eq!(of("astroObject").await?, json!(["NGC4151"]));
    assert_eq!(of("coverage.Temporal").await?[0]["coverage.Temporal.StartTime"]["value"], "1993-04-22");
    // Adding the same file again adds no values.
    server.upload(&fiona, &add, "c.fits", &fits(), &json!({})).await?;
    assert_eq!(of("astroInstrument").await?, json!(["FOS"]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn netcdf_has_its_structure_beside_it_and_a_place() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, _) = server.dataset(&fiona, "sea").await?;
    use_blocks(&server, &fiona, "sea", &json!(["citation", "geospatial"])).await?;
    let add = format!("/api/datasets/{dataset}/add");
    let added = server.upload(&fiona, &add, "ocean.nc", OCEAN, &json!({})).await?.json();
    let id = added["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let place = field(&server, &fiona, dataset, "geospatial", "geographicBoundingBox").await?;
    let sides = ["westLongitude", "eastLongitude", "northLatitude", "southLatitude"];
    let sides = sides.map(|it| place[0][it]["value"].as_str().unwrap_or_default().to_owned());
    assert_eq!(sides, ["-16.320007", "-6.220001", "49.62", "41.8"]);
    let ncml = format!("/api/access/datafile/{id}/auxiliary/NcML/0.1");
    assert_eq!(server.get(&stranger, &ncml).await?.status, StatusCode::FORBIDDEN);
    let kept = server.upload(&fiona, &add, "kept.nc", OCEAN, &json!({"restrict": "true"})).await?.json();
    let kept = kept["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let of_kept = format!("/api/access/datafile/{kept}/auxiliary/NcML/0.1");
    let got = server.get(&fiona, &ncml).await?;
    assert_eq!(got.headers["content-type"], "text/xml; name=\"ocean.nc.NcML_0.1.xml\";charset=UTF-8");
    assert_eq!(got.text(), OCEAN_XML);
    server.publish(&fiona, "sea", dataset).await?;
    assert_eq!(server.get("", &ncml).await?.text(), OCEAN_XML);
    // Only callers who may download a restricted file may see what is in it.
    assert_eq!(server.get("", &of_kept).await?.status, StatusCode::FORBIDDEN);
    assert_eq!(server.get(&stranger, &of_kept).await?.status, StatusCode::FORBIDDEN);
    assert!(server.get(&fiona, &of_kept).await?.text().contains("kept.nc"));
    // Only superusers may regenerate it.
    let gone = server.send(&fiona, "DELETE", &ncml, "", Body::empty()).await?;
    assert_eq!(gone.status, StatusCode::OK, "{}", gone.text());
    let extract = format!("/api/files/{id}/extractNcml");
    let refused = server.send(&fiona, "POST", &extract, "", Body::empty()).await?;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    server.send("", "PUT", "/api/admin/superuser/fiona", "", "true").await?;
    let made = server.send(&fiona, "POST", &extract, "", Body::empty()).await?;
    assert_eq!(made.json()["data"]["result"], true, "{}", made.text());
    assert_eq!(server.get("", &ncml).await?.text(), OCEAN_XML);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_broken_headers_are_added() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "odd").await?;
    let add = format!("/api/datasets/{dataset}/add");
    for (name, bytes) in
        [("false.hdf5", &[1, 2, 3, 4, 5][..]), ("cut.nc", &OCEAN[..3_000]), ("short.fits", b"SIMPLE  =")]
    {
        let got = server.upload(&fiona, &add, name, bytes, &json!({})).await?;
        assert_eq!(got.status, StatusCode::OK, "{name}: {}", got.text());
        let id = got.json()["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
        let ncml = format!("/api/access/datafile/{id}/auxiliary/NcML/0.1");
        assert_eq!(server.get(&fiona, &ncml).await?.status, StatusCode::NOT_FOUND, "{name}");
    }
    Ok(())
}
