//! Draws the results as grouped bars on a logarithmic scale.

use std::path::PathBuf;

use plotters::prelude::*;

use crate::results::Results;
use crate::workloads::{IMPLEMENTATIONS, Kind, WORKLOADS};

const SIZE: (u32, u32) = (1280, 560);
/// One for each of [`IMPLEMENTATIONS`], distinct for colour-blind readers.
const COLOURS: [RGBColor; IMPLEMENTATIONS.len()] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
];
/// Bars and a gap.
const GROUP: f64 = IMPLEMENTATIONS.len() as f64 + 1.5;

/// Writes `src/docs/compare.svg`; where that is.
pub fn draw(results: &Results) -> Result<PathBuf, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/docs/compare.svg");
    let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    parent.map_err(|error| format!("{}: {error}", path.display()))?;
    let root = SVGBackend::new(&path, SIZE).into_drawing_area();
    plot(&root, results).map_err(|error| format!("{}: {error}", path.display()))?;
    drop(root);
    Ok(path)
}

fn plot(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    results: &Results,
) -> Result<(), Box<dyn std::error::Error>> {
    let groups: Vec<&str> = WORKLOADS
        .iter()
        .filter(|workload| workload.kind != Kind::Filled)
        .map(|workload| workload.name)
        .filter(|name| results.lines.iter().any(|line| line.workload == *name))
        .collect();
    let shown = results.lines.iter().filter(|line| groups.contains(&line.workload.as_str()));
    let highest = shown.map(|line| line.ns_median).fold(10.0, f64::max);
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(root)
        .caption("ns per message (B4: per cycle), median; shorter is better", ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(32)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..GROUP * groups.len() as f64, (1.0..highest * 2.0).log_scale())?;
    let name_of = |x: &f64| {
        let group = (*x / GROUP) as usize;
        groups.get(group).copied().unwrap_or_default().to_owned()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .x_label_formatter(&name_of)
        .y_desc("ns")
        .y_label_formatter(&|ns| format!("{ns:.0}"))
        .label_style(("sans-serif", 15))
        .draw()?;
    for (rank, (name, colour)) in IMPLEMENTATIONS.iter().zip(COLOURS).enumerate() {
        let bars = groups.iter().enumerate().filter_map(|(group, workload)| {
            let ns = results.find(workload, name)?.ns_median;
            let left = GROUP * group as f64 + 0.75 + rank as f64;
            Some(Rectangle::new([(left, 1.0), (left + 0.9, ns.max(1.0))], colour.filled()))
        });
        chart
            .draw_series(bars)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 12, y + 6)], colour.filled()));
    }
    let names = groups.iter().enumerate().map(|(group, name)| {
        let at = (GROUP * (group as f64 + 0.5) - 0.4, 1.0);
        let style = ("sans-serif", 15).into_font().into_text_style(root);
        EmptyElement::at(at) + Text::new((*name).to_owned(), (-16, 8), style)
    });
    chart.draw_series(names)?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 15))
        .draw()?;
    root.present()?;
    Ok(())
}
