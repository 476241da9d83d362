// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "workloads/workload.hpp"

/// What the collectives benchmark measures: the product of its options, as a list.
namespace isoscale::workloads::collectives {

[[nodiscard]] std::span<const OptionSpec> option_table();

/// sendrecv shifts along a ring: each rank sends to the next and receives from the one before.
enum class Operation : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  sendrecv,
  barrier,
};
[[nodiscard]] std::string_view name(Operation operation);
[[nodiscard]] bool reduces(Operation operation);
/// Whether a whole is made of one part per rank: nccl-tests counts parts then.
[[nodiscard]] bool has_parts(Operation operation);
[[nodiscard]] bool has_root(Operation operation);

enum class Place : std::uint8_t { out_of_place, in_place };
enum class Groups : std::uint8_t { all, one };
/// The library's own collective, or a textbook algorithm as a program of exchanges and additions.
enum class Implementation : std::uint8_t { library, ring, tree, recursive_doubling };
[[nodiscard]] std::string_view name(Implementation implementation);

struct CollectiveCase {
  Operation operation = Operation::all_reduce;
  program::DType type = program::DType::f32;
  std::optional<program::Reduction> reduction{};
  Place place = Place::out_of_place;
  Implementation implementation = Implementation::library;
  Groups groups = Groups::all;
  std::uint64_t bytes = 0;   ///< S of nccl-tests, as realised
  std::uint64_t count = 0;   ///< elements of the count argument: of a part where there are parts
  std::uint64_t stride = 0;  ///< elements from one call's data to the next call's
  std::uint64_t calls = 1;   ///< of one pass, each on its own data
  std::uint64_t most_times = 1;

  /// Whether a call changes what it starts from, so that a second one would not compute the same.
  [[nodiscard]] bool spoils_input() const {
    return place == Place::in_place && reduction == program::Reduction::sum;
  }
};

/// What all cases share.
struct Setting {
  mesh::Axis axis = mesh::Axis::dp;  ///< that groups vary along
  std::string axis_name;             ///< as given: "world", "tp"
  int members = 1;                   ///< ranks of a group
  int root = 0;                      ///< place in the group
};

/// Throws base::UsageError: an axis that the mesh has not, a root beyond the group, sizes too small
/// for every operation.
[[nodiscard]] Setting setting_of(const Request& request);
[[nodiscard]] std::vector<CollectiveCase> cases_of(const Request& request, const Setting& setting);

}  // namespace isoscale::workloads::collectives
