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
#include "program/builder.hpp"
#include "program/op.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::collectives {

// Measures collective operations of many sizes, and checks each result bit for bit. There is one
// case for each combination of the options' values that can be measured: not every implementation
// has every operation, reduction and placement.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// sendrecv shifts data along a ring: each rank sends to the next one and receives from the
/// previous one.
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

/// The properties of an operation on which sizes, checks and rates depend.
struct OperationRow {
  std::string_view name;
  std::optional<program::CollectiveKind> kind{};  ///< absent for sendrecv, which is an exchange
  bool reduces = false;
  bool has_parts = false;  ///< the data has one part per rank, of CollectiveCase::count elements
  bool has_root = false;
};
[[nodiscard]] const OperationRow& row_of(Operation operation);
[[nodiscard]] inline std::string_view name(Operation operation) { return row_of(operation).name; }

/// Place says if a result overwrites the data that was sent (in_place). Groups says if all groups
/// along an axis communicate at once, or only the first group. The value `both` occurs only in
/// options; it asks for cases of both kinds.
enum class Place : std::uint8_t { out_of_place, in_place, both };
enum class Groups : std::uint8_t { all, one, both };
/// library: the collective of the communication library, such as NCCL. The others are textbook
/// algorithms, written as exchanges of messages and additions.
enum class Implementation : std::uint8_t { library, ring, tree, recursive_doubling };
[[nodiscard]] std::string_view name(Implementation implementation);

struct CollectiveCase {
  Operation operation = Operation::all_reduce;
  program::DType type = program::DType::f32;
  std::optional<program::Reduction> reduction{};
  Place place = Place::out_of_place;
  Implementation implementation = Implementation::library;
  Groups groups = Groups::all;
  std::uint64_t bytes = 0;   ///< size as nccl-tests counts and rounds it
  std::uint64_t count = 0;   ///< elements; of one part if the operation has parts
  std::uint64_t stride = 0;  ///< elements from the data of one call to that of the next
  std::uint64_t calls = 1;   ///< calls in one pass, each on data of its own
  std::uint64_t most_times = 1;

  /// True if a call overwrites its own input, so that a second call would compute something else.
  [[nodiscard]] bool spoils_input() const {
    return place == Place::in_place && reduction == program::Reduction::sum;
  }
};

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<Operation> op;
  std::vector<program::Reduction> reduction;
  std::vector<Implementation> implementation;
  std::vector<program::DType> types;  ///< empty: the type that the precision stores
  Sizes sizes;
  std::string axis;  ///< "world" for all ranks, or the name of an axis, such as "tp"
  Place in_place{};
  Groups groups{};
  int root = 0;  ///< index of the root in the group
  std::uint64_t rotate = 0;
};
[[nodiscard]] Values values_of(const Request& request);

/// The options, and the axis along which groups of ranks communicate. All cases use the same axis.
struct Setting {
  Values options{};
  mesh::Axis axis = mesh::Axis::dp;  ///< groups are along this axis
  int members = 1;                   ///< ranks of a group
};

/// Finds the axis along which ranks communicate. Throws base::UsageError for an axis that the mesh
/// does not have, for axis=world if the mesh has several axes, and for a root that is not in the
/// group.
[[nodiscard]] Setting setting_of(const Request& request, Values options);
[[nodiscard]] inline Setting setting_of(const Request& request) {
  return setting_of(request, values_of(request));
}
/// Returns the element types to measure: those that the options name or, if they name none, the
/// type that the precision stores.
[[nodiscard]] std::vector<program::DType> types_of(const Request& request, const Values& options);
/// Returns the cases. Throws base::UsageError if none is left, because all sizes are too small or
/// the combinations of options do not exist, and for a size that is too large for one call.
[[nodiscard]] std::vector<CollectiveCase> cases_of(const Request& request, const Setting& setting);

/// The index of a rank in its group, and the members of the group.
struct Member {
  int index = 0;
  std::vector<int> ranks{};
  int root = 0;  ///< index of the root in the group
};
/// Returns the values that one call of a case leaves in `buffer` on a rank. `base` is the index of
/// the call's first element in the buffer, and thus in the pattern.
[[nodiscard]] std::vector<Expectation> received(const CollectiveCase& one, const Member& me,
                                                program::BufferId buffer, std::uint64_t base);

/// The input of emit_textbook(): one call of a collective, which is written as exchanges and
/// additions on one stream.
struct TextbookCall {
  Operation operation = Operation::all_reduce;
  Implementation implementation = Implementation::ring;
  mesh::Axis axis = mesh::Axis::dp;
  int members = 1;
  int me = 0;  ///< index of this rank in the group
  program::Slice send{}, receive{};
  /// A buffer with twice as many elements as a rank sends or receives, whichever is more: half of
  /// them for incoming data, half for partial sums.
  program::BufferId scratch = program::no_buffer;
};

/// Emits the ops of the call. Sources: ring: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69
/// (2009); tree: binomial reduction and broadcast; recursive doubling, and halving for
/// reduce_scatter: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005).
void emit_textbook(program::Builder& builder, const TextbookCall& call);

[[nodiscard]] BenchHooks hooks();

/// These functions do what BenchHooks describes, for the single session of the benchmark and with
/// these options. Other workloads call them, too.
[[nodiscard]] Bench build(const Request& request, const Values& options);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, const Values& options,
                                              std::size_t index, int rank);

}  // namespace isoscale::workloads::collectives
