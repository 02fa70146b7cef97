//! `geo_point` and `geo_radius`: datasets with a bounding box near a point (section 10 of the contract).

use std::ops::ControlFlow;

use pinakes_store::{End, Expr, Query, View};
use serde_json::{Value, json};

use crate::app::Call;
use crate::blocks::fields::Metadata;
use crate::error::ApiError;
use crate::search::document::DOCUMENT;

/// Mean radius of the earth, in kilometres.
const EARTH_KM: f64 = 6371.0088;
/// Maximum number of documents whose boxes one search examines.
const CANDIDATES: usize = 20_000;

/// A circle around a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circle {
    /// Degrees north.
    latitude: f64,
    /// Degrees east.
    longitude: f64,
    radius_km: f64,
}

/// A bounding box in degrees. If west is greater than east, it crosses the 180th meridian.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl Area {
    /// Returns a box; `None` if its values are not a box on the globe.
    fn new(west: f64, east: f64, south: f64, north: f64) -> Option<Self> {
        let is_on_globe = [west, east].iter().all(|it| it.abs() <= 180.0)
            && [south, north].iter().all(|it| it.abs() <= 90.0)
            && south <= north;
        is_on_globe.then_some(Self { west, east, south, north })
    }

    fn spans(&self, longitude: f64) -> bool {
        match self.west <= self.east {
            true => (self.west..=self.east).contains(&longitude),
            false => self.west <= longitude || longitude <= self.east,
        }
    }
}

/// Returns the part of a document about a dataset's boxes: the boxes, and the latitudes between which all of them lie.
pub(super) fn document_part(metadata: &Metadata<'_>) -> Option<Value> {
    let areas: Vec<Area> = metadata
        .compounds("geographicBoundingBox")
        .iter()
        .filter_map(|it| {
            let number = |name: &str| it.get(name)?.trim().parse::<f64>().ok();
            Area::new(
                number("westLongitude")?,
                number("eastLongitude")?,
                number("southLatitude")?,
                number("northLatitude")?,
            )
        })
        .collect();
    let south = areas.iter().map(|it| it.south).reduce(f64::min)?;
    let north = areas.iter().map(|it| it.north).reduce(f64::max)?;
    let areas: Vec<[f64; 4]> = areas.iter().map(|it| [it.west, it.east, it.south, it.north]).collect();
    Some(json!({"south": south, "north": north, "areas": areas}))
}

/// Returns the boxes in a document.
fn areas(document: &Value) -> Vec<Area> {
    let list = document["place"]["areas"].as_array();
    let area = |it: &Value| {
        let number = |at: usize| it.get(at)?.as_f64();
        Area::new(number(0)?, number(1)?, number(2)?, number(3)?)
    };
    list.into_iter().flatten().filter_map(area).collect()
}

impl Circle {
    /// Parses the circle that a request asks for.
    ///
    /// Errors: 400 for a point without a radius or vice versa, and for invalid values.
    pub(super) fn of(call: &Call) -> Result<Option<Self>, ApiError> {
        let bad = |text: &str| Err(ApiError::bad_request(text));
        let (point, radius) = match (call.query.filled("geo_point"), call.query.filled("geo_radius")) {
            (None, None) => return Ok(None),
            (Some(_), None) => return bad("If you supply geo_point you must also supply geo_radius."),
            (None, Some(_)) => return bad("If you supply geo_radius you must also supply geo_point."),
            (Some(point), Some(radius)) => (point, radius),
        };
        let parts: Vec<&str> = point.split(',').collect();
        let [latitude, longitude] = parts[..] else {
            return bad("Must contain a single comma to separate latitude and longitude.");
        };
        let number = |text: &str, most: f64| text.trim().parse::<f64>().ok().filter(|it| it.abs() <= most);
        let (Some(latitude), Some(longitude)) = (number(latitude, 90.0), number(longitude, 180.0)) else {
            return bad(&format!("The point {point} is not on the globe."));
        };
        match radius.trim().parse::<f64>() {
            Ok(radius) if 0.0 < radius => {
                // Half of the circumference of the earth reaches everywhere.
                let radius_km = radius.min(EARTH_KM * std::f64::consts::PI);
                Ok(Some(Self { latitude, longitude, radius_km }))
            }
            Ok(_) => bad("The radius must be greater than 0."),
            Err(_) => bad("Non-number radius supplied."),
        }
    }

    /// Returns the condition, as a list of ids, that a document matching `filter` has a box within the circle.
    ///
    /// Errors: 400 if too many boxes would have to be examined.
    pub(super) fn condition(&self, view: &mut View<'_>, filter: &Expr) -> Result<Expr, ApiError> {
        let degrees = (self.radius_km / EARTH_KM).to_degrees();
        let near = Expr::And(vec![
            filter.clone(),
            Expr::Range("place.south".into(), End::Open, End::Included((self.latitude + degrees).into())),
            Expr::Range("place.north".into(), End::Included((self.latitude - degrees).into()), End::Open),
        ]);
        let (mut ids, mut n, mut fault) = (Vec::new(), 0, None);
        view.for_each(&DOCUMENT, &Query::filter(near), |record| {
            n += 1;
            match record.json() {
                Ok(document) if areas(&document).iter().any(|it| self.is_near(it)) => ids.push(record.id),
                Ok(_) => {}
                Err(error) => fault = Some(error),
            }
            if CANDIDATES < n || fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = fault {
            return Err(error.into());
        }
        if CANDIDATES < n {
            return Err(ApiError::bad_request(format!(
                "More than {CANDIDATES} datasets lie on these parallels; ask for a smaller radius or for less by other conditions."
            )));
        }
        Ok(Expr::Ids(ids))
    }

    /// Returns whether any point of the box is within the circle.
    fn is_near(&self, area: &Area) -> bool {
        if area.spans(self.longitude) {
            let nearest = self.latitude.clamp(area.south, area.north);
            return self.distance_km(nearest, self.longitude) <= self.radius_km;
        }
        [area.west, area.east].iter().any(|&meridian| {
            // The foot of the perpendicular great circle from the point to the meridian.
            let east = (meridian - self.longitude).to_radians().cos();
            let foot = match 0.0 < east {
                true => (self.latitude.to_radians().tan() / east).atan().to_degrees(),
                false => 90.0_f64.copysign(self.latitude),
            };
            [foot.clamp(area.south, area.north), area.south, area.north]
                .iter()
                .any(|&latitude| self.distance_km(latitude, meridian) <= self.radius_km)
        })
    }

    /// Returns the distance by the haversine formula.
    fn distance_km(&self, latitude: f64, longitude: f64) -> f64 {
        let (a, b) = (self.latitude.to_radians(), latitude.to_radians());
        let half = |degrees: f64| (degrees.to_radians() / 2.0).sin().powi(2);
        let h = half(latitude - self.latitude) + a.cos() * b.cos() * half(longitude - self.longitude);
        2.0 * EARTH_KM * h.sqrt().min(1.0).asin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(point: (f64, f64), radius_km: f64, [west, east, south, north]: [f64; 4]) -> bool {
        let circle = Circle { latitude: point.0, longitude: point.1, radius_km };
        circle.is_near(&Area::new(west, east, south, north).unwrap())
    }

    #[test]
    fn boxes_are_near_or_not() {
        let germany = [5.9, 15.0, 47.3, 55.1];
        for (point, radius_km, area, expected) in [
            ((50.0, 10.0), 0.1, germany, true),
            ((0.0, 0.0), 5.0, germany, false),
            // One degree of latitude is 111.2 km.
            ((46.3, 10.0), 111.0, germany, false),
            ((46.3, 10.0), 111.5, germany, true),
            // One degree of longitude at 50 degrees is 71.5 km.
            ((50.0, 16.0), 71.0, germany, false),
            ((50.0, 16.0), 72.0, germany, true),
            // The corner is farther away than either side.
            ((46.3, 16.0), 130.0, germany, false),
            ((46.3, 16.0), 140.0, germany, true),
            // Across the 180th meridian.
            ((0.0, -179.5), 1.0, [179.0, -179.0, -1.0, 1.0], true),
            ((0.0, -178.0), 111.0, [179.0, -179.0, -1.0, 1.0], false),
            ((0.0, -178.0), 112.0, [179.0, -179.0, -1.0, 1.0], true),
            // Across the pole.
            ((89.0, 0.0), 223.0, [180.0, 180.0, 80.0, 89.0], true),
            ((89.0, 0.0), 221.0, [180.0, 180.0, 80.0, 89.0], false),
        ] {
            assert_eq!(is_near(point, radius_km, area), expected, "{point:?} {radius_km} {area:?}");
        }
    }

    #[test]
    fn boxes_are_kept_with_their_parallels() {
        let of = |west: &str, south: &str| {
            json!({
                "westLongitude": {"typeName": "westLongitude", "value": west},
                "eastLongitude": {"typeName": "eastLongitude", "value": "20"},
                "southLatitude": {"typeName": "southLatitude", "value": south},
                "northLatitude": {"typeName": "northLatitude", "value": "40"},
            })
        };
        let blocks = |values: Value| {
            json!({"geospatial": {"fields": [{"typeName": "geographicBoundingBox", "multiple": true,
                "typeClass": "compound", "value": values}]}})
        };
        let kept = document_part(&Metadata(&blocks(json!([of("10", "30"), of("x", "0"), of("-5", "-1.5")]))));
        let expected = json!({"south": -1.5, "north": 40.0,
            "areas": [[10.0, 20.0, 30.0, 40.0], [-5.0, 20.0, -1.5, 40.0]]});
        assert_eq!(kept, Some(expected));
        assert_eq!(document_part(&Metadata(&blocks(json!([of("10", "50")])))), None);
    }
}
