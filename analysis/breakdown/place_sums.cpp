// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/place_sums.hpp"

#include "analysis/breakdown/seconds.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

/// Returns what an op that communicates adds to the sums of its place.
Breakdown of_communication(const program::OutlineOp& op, const OpShare& share,
                           double bubble_share) {
  Breakdown result;
  result.gap = seconds(share.gap);
  result.transfer = seconds(share.own);
  result.wait = seconds(share.waiting);
  result.hidden_communication = seconds(share.hidden);
  if (program::between_stages(op)) {
    result.bubble = result.wait * bubble_share;
    result.wait -= result.bubble;
  }
  result.step = result.transfer + result.wait + result.bubble + result.gap;
  return result;
}

bool has_time(const Breakdown& parts) { return parts.step > 0 || parts.hidden_communication > 0; }

}  // namespace

Layers::Layers(const program::OutlineSet& set) {
  std::map<int, std::uint32_t> slot_of;
  for (const program::Outline& outline : set.outlines) {
    auto& slots = slots_.emplace_back();
    slots.reserve(outline.ops.size());
    for (const program::OutlineOp& op : outline.ops) {
      const auto [place, added] =
          slot_of.try_emplace(op.place.layer, static_cast<std::uint32_t>(names_.size()));
      if (added) names_.push_back(op.place.layer);
      slots.push_back(place->second);
    }
  }
}

PlaceSums::PlaceSums(const Layers& layers)
    : layer_names_(&layers.names()), layers_(layers.names().size()) {}

void PlaceSums::add(const program::Outline& outline, std::span<const std::uint32_t> layer_slots,
                    std::span<const OpShare> shares, double bubble_share) {
  for (std::size_t op = 0; op < shares.size(); ++op) {
    const program::OutlineOp& at = outline.ops[op];
    Breakdown& phase = phases_[static_cast<std::size_t>(at.place.phase)];
    Breakdown& layer = layers_[layer_slots[op]];
    if (program::communicates(at.kind)) {
      const Breakdown parts = of_communication(at, shares[op], bubble_share);
      for (Breakdown* const sum : {&phase, &layer, &axes_[at.axes.bits() % axes_count]}) {
        *sum += parts;
      }
      continue;
    }
    // Most ops are of this kind, so only what they can add is added.
    const auto busy = at.kind == OpKind::copy ? &Breakdown::copies : &Breakdown::compute;
    const double own = seconds(shares[op].own), gap = seconds(shares[op].gap);
    for (Breakdown* const sum : {&phase, &layer}) {
      sum->*busy += own;
      sum->gap += gap;
      sum->step += own + gap;
    }
  }
}

void PlaceSums::add(const PlaceSums& more) {
  for (std::size_t i = 0; i < phases_.size(); ++i) phases_[i] += more.phases_[i];
  for (std::size_t i = 0; i < axes_.size(); ++i) axes_[i] += more.axes_[i];
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i] += more.layers_[i];
}

void PlaceSums::write(double count, const mesh::Shape& mesh, BreakdownResult& result) const {
  const auto put = [count](auto& map, auto key, Breakdown parts) {
    if (!has_time(parts)) return;
    parts *= 1 / count;
    map[key] += parts;
  };
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    put(result.by_phase, static_cast<program::Phase>(i), phases_[i]);
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto axes = mesh::AxisSet::from_bits(static_cast<std::uint8_t>(i));
    put(result.by_axes, mesh::varying(mesh, axes), axes_[i]);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    put(result.by_layer, (*layer_names_)[i], layers_[i]);
  }
}

}  // namespace isoscale::analysis
