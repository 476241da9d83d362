// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/op.hpp"

#include <fmt/format.h>

#include <type_traits>

namespace isoscale::program {

std::string_view name(Transport transport) {
  return transport == Transport::nccl ? "nccl" : "symmetric";
}

std::string_view name(Phase phase) {
  static constexpr std::array<std::string_view, phase_count> names{
      "setup", "input", "forward", "backward", "gradient_reduction", "optimizer"};
  return names[static_cast<std::size_t>(phase)];
}

std::string label(OpKind kind, const Place& place) {
  std::string text{name(kind)};
  if (place.layer >= 0) text += " layer " + std::to_string(place.layer);
  if (place.microbatch >= 0) text += " mb " + std::to_string(place.microbatch);
  return text;
}

std::string describe(OpKind kind, const Place& place) {
  std::string text = fmt::format("{} ({}", name(kind), name(place.phase));
  if (place.layer >= 0) text += fmt::format(", layer {}", place.layer);
  if (place.microbatch >= 0) text += fmt::format(", microbatch {}", place.microbatch);
  return text + ")";
}

OpPointer pointer_to(const Payload& payload) {
  return std::visit([](const auto& op) { return OpPointer{&op}; }, payload);
}

OpKind kind_of(OpPointer op) {
  if (const auto* const collective = std::get_if<const Collective*>(&op)) {
    return static_cast<OpKind>(static_cast<int>(OpKind::all_reduce) +
                               static_cast<int>((*collective)->kind));
  }
  if (std::holds_alternative<const Gemm*>(op)) return OpKind::gemm;
  // From Exchange on, OpKind lists the kinds in the order of Payload's alternatives.
  static_assert(std::is_same_v<std::variant_alternative_t<2, Payload>, Exchange>);
  static_assert(std::variant_size_v<Payload> - 2 ==
                op_kind_count - static_cast<std::size_t>(OpKind::exchange));
  return static_cast<OpKind>(static_cast<std::size_t>(OpKind::exchange) + op.index() - 2);
}

std::vector<int> partners(const Op& op, const mesh::Shape& mesh, int rank) {
  std::vector<int> others;
  if (const auto* const collective = std::get_if<Collective>(&op.payload)) {
    others = mesh::group_members(mesh, rank, collective->axes);
  } else if (const auto* const exchange = std::get_if<Exchange>(&op.payload)) {
    for (const Transfer& transfer : exchange->transfers) {
      others.push_back(mesh::neighbour(mesh, rank, transfer.axis, transfer.offset));
    }
  }
  return others;
}

}  // namespace isoscale::program
