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

// The collectives benchmark measures collective operations of many sizes, and checks each bit for
// bit. Its list of cases is the product of its options.

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
/// True if a whole consists of one part per rank; nccl-tests then counts parts.
[[nodiscard]] bool has_parts(Operation operation);
[[nodiscard]] bool has_root(Operation operation);

enum class Place : std::uint8_t { out_of_place, in_place };
enum class Groups : std::uint8_t { all, one };
/// Says who implements a collective: the library, or a textbook algorithm as a program of exchanges
/// and additions.
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

  /// True if a call overwrites its own input, so that a second call would compute something else.
  [[nodiscard]] bool spoils_input() const {
    return place == Place::in_place && reduction == program::Reduction::sum;
  }
};

/// The group that all cases share.
struct Setting {
  mesh::Axis axis = mesh::Axis::dp;  ///< groups vary along it
  std::string axis_name;             ///< as given: "world", "tp"
  int members = 1;                   ///< ranks of a group
  int root = 0;                      ///< place in the group
};

/// Reads the options. Throws base::UsageError for an axis that the mesh does not have, a root
/// beyond the group, or sizes too small for every operation.
[[nodiscard]] Setting setting_of(const Request& request);
[[nodiscard]] std::vector<CollectiveCase> cases_of(const Request& request, const Setting& setting);

/// One call of a collective as its textbook algorithm: exchanges and additions on one stream.
struct TextbookCall {
  Operation operation = Operation::all_reduce;
  Implementation implementation = Implementation::ring;
  mesh::Axis axis = mesh::Axis::dp;
  int members = 1;
  int me = 0;  ///< place of the rank that plays
  program::Slice send{}, receive{};
  program::BufferId scratch = program::no_buffer;  ///< of scratch_room() elements
};

/// Returns the elements of scratch that a call needs: half for incoming data, half for partial
/// sums. `whole` is the larger of what a rank sends and receives.
[[nodiscard]] constexpr std::uint64_t scratch_room(std::uint64_t whole) { return 2 * whole; }

/// Emits the call. ring: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009); tree: binomial
/// reduction and broadcast; recursive doubling, and halving for reduce_scatter: Thakur,
/// Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005).
void emit_textbook(program::Builder& builder, const TextbookCall& call);

[[nodiscard]] BenchHooks hooks();

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::collectives
