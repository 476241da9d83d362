// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/bench/exact_data.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale::workloads::collectives {

namespace {

using program::Reduction;

using program::CollectiveKind;

/// The operations, in the order of the enumerators.
constexpr std::array<OperationRow, 10> operations{
    {{.name = "all_reduce", .kind = CollectiveKind::all_reduce, .reduces = true},
     {.name = "reduce_scatter",
      .kind = CollectiveKind::reduce_scatter,
      .reduces = true,
      .has_parts = true},
     {.name = "all_gather", .kind = CollectiveKind::all_gather, .has_parts = true},
     {.name = "broadcast", .kind = CollectiveKind::broadcast, .has_root = true},
     {.name = "reduce", .kind = CollectiveKind::reduce, .reduces = true, .has_root = true},
     {.name = "all_to_all", .kind = CollectiveKind::all_to_all, .has_parts = true},
     {.name = "gather", .kind = CollectiveKind::gather, .has_parts = true, .has_root = true},
     {.name = "scatter", .kind = CollectiveKind::scatter, .has_parts = true, .has_root = true},
     {.name = "sendrecv"},
     {.name = "barrier", .kind = CollectiveKind::barrier}}};

constexpr std::array implementation_names{std::string_view{"library"}, std::string_view{"ring"},
                                          std::string_view{"tree"},
                                          std::string_view{"recursive-doubling"}};

/// nccl-tests rounds each rank's part down to a multiple of this many bytes, so that loads are
/// aligned.
constexpr std::uint64_t part_alignment = 16;

/// The bytes that one play should move, unless that would need too many calls.
constexpr std::uint64_t bytes_of_play = std::uint64_t{64} << 20U;

constexpr std::uint64_t most_calls = 1024, most_ops = 256;

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<std::string> op, reduction, implementation;
  std::string sizes, types, in_place, axis, groups;
  int root = 0;
  std::uint64_t rotate = 0;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

Operation operation_named(std::string_view name) {
  const auto found = std::ranges::find(operations, name, &OperationRow::name);
  return static_cast<Operation>(found - operations.begin());
}

Implementation implementation_named(std::string_view name) {
  const auto found = std::ranges::find(implementation_names, name);
  return static_cast<Implementation>(found - implementation_names.begin());
}

std::vector<Place> places_of(const Values& options, Operation operation) {
  const bool only_out = operation == Operation::all_to_all || operation == Operation::sendrecv ||
                        operation == Operation::barrier;
  const std::string& asked = options.in_place;
  if (asked == "no" || (asked == "both" && only_out)) return {Place::out_of_place};
  if (only_out) return {};
  if (asked == "yes") return {Place::in_place};
  return {Place::out_of_place, Place::in_place};
}

std::vector<std::optional<Reduction>> reductions_of(const Values& options, Operation operation) {
  if (!row_of(operation).reduces) return {std::nullopt};
  std::vector<std::optional<Reduction>> result;
  for (const std::string& name : options.reduction) {
    result.emplace_back(name == "sum"   ? Reduction::sum
                        : name == "min" ? Reduction::min
                                        : Reduction::max);
  }
  return result;
}

/// True if the case can be measured. Textbook algorithms support only sums, and only out of place.
bool exists(Implementation implementation, Operation operation, Place place,
            std::optional<Reduction> reduction, int members) {
  if (implementation == Implementation::library) return true;
  if (place == Place::in_place || reduction.value_or(Reduction::sum) != Reduction::sum) {
    return false;
  }
  const bool is_power = std::has_single_bit(static_cast<unsigned>(members));
  switch (implementation) {
    case Implementation::ring:
      return operation == Operation::all_reduce || operation == Operation::all_gather ||
             operation == Operation::reduce_scatter;
    case Implementation::tree:
      return operation == Operation::all_reduce;
    default:
      return is_power &&
             (operation == Operation::all_reduce || operation == Operation::all_gather ||
              operation == Operation::reduce_scatter);
  }
}

/// Sets the size of a case as nccl-tests would round it. `count` becomes 0 if the rounded size is
/// 0.
void realise(CollectiveCase& one, std::uint64_t asked, int members) {
  const std::uint64_t element = program::element_size(one.type);
  if (!row_of(one.operation).has_parts) {
    one.count = one.stride = asked / element;
    one.bytes = one.count * element;
    return;
  }
  const auto n = static_cast<std::uint64_t>(members);
  const std::uint64_t aligned = std::max<std::uint64_t>(1, part_alignment / element);
  one.count = asked / element / n / aligned * aligned;
  one.stride = one.count * n;
  one.bytes = one.stride * element;
}

void plan_calls(CollectiveCase& one, std::uint64_t rotate, std::uint64_t most) {
  const std::uint64_t bytes = std::max<std::uint64_t>(one.bytes, 1);
  const std::uint64_t wanted = std::clamp<std::uint64_t>(bytes_of_play / bytes, 1, most_calls);
  const std::uint64_t slots = std::max<std::uint64_t>(1, rotate / bytes);
  one.calls = std::min({wanted, slots, most});
  one.most_times = one.spoils_input() ? 1 : std::max<std::uint64_t>(1, wanted / one.calls);
}

class Lister {
 public:
  Lister(const Request& request, const Setting& setting)
      : request_(request),
        setting_(setting),
        options_(values_of(request)),
        sizes_(parse_sizes("sizes", options_.sizes)),
        rotate_(options_.rotate),
        most_ops_(std::min(most_ops, request.bounds.most_short_calls)) {}

  std::vector<CollectiveCase> list() {
    for (const Groups groups : groups_of()) {
      for (const std::string& op : options_.op) {
        list_operation(groups, operation_named(op));
      }
    }
    return std::move(cases_);
  }

 private:
  [[nodiscard]] std::vector<Groups> groups_of() const {
    if (options_.groups == "both") return {Groups::all, Groups::one};
    return {options_.groups == "one" ? Groups::one : Groups::all};
  }

  void list_operation(Groups groups, Operation operation) {
    if (operation == Operation::barrier) {
      cases_.push_back({.operation = operation, .groups = groups});
      cases_.back().calls = most_ops_;
      cases_.back().most_times = most_calls / most_ops_;
      return;
    }
    for (const program::DType type : element_types(request_, options_.types)) {
      for (const auto& reduction : reductions_of(options_, operation)) {
        for (const std::string& name : options_.implementation) {
          const Implementation implementation = implementation_named(name);
          for (const Place place : places_of(options_, operation)) {
            if (!exists(implementation, operation, place, reduction, setting_.members)) continue;
            list_sizes({.operation = operation,
                        .type = type,
                        .reduction = reduction,
                        .place = place,
                        .implementation = implementation,
                        .groups = groups});
          }
        }
      }
    }
  }

  void list_sizes(CollectiveCase one) {
    std::uint64_t last = 0;  // rounding may make two sizes equal
    for (const std::uint64_t asked : sizes_) {
      realise(one, asked, setting_.members);
      // Textbook algorithms for all_reduce cut the data into as many parts as there are ranks.
      const bool cuts =
          one.implementation != Implementation::library && one.operation == Operation::all_reduce;
      if (one.count == 0 || one.bytes == last ||
          (cuts && one.count < static_cast<std::uint64_t>(setting_.members))) {
        continue;
      }
      if (one.stride > UINT32_MAX) {
        throw usage_error(
            "sizes: {} bytes are {} elements of {}, more than one "
            "call takes: at most {}",
            one.bytes, one.stride, program::name(one.type), UINT32_MAX);
      }
      last = one.bytes;
      plan_calls(one, rotate_, most_ops_);
      cases_.push_back(one);
    }
  }

  const Request& request_;
  const Setting& setting_;
  Values options_;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t rotate_, most_ops_;
  std::vector<CollectiveCase> cases_;
};

/// Returns the values that one rank must hold after the calls of a case. The buffers of a type are
/// numbered in order of allocation: source, work, and scratch if a textbook algorithm needs it.
class Expecter {
 public:
  Expecter(const Request& request, const Setting& setting, int rank, program::BufferId source)
      : setting_(setting),
        rank_(rank),
        place_(mesh::group_index(request.mesh, rank, setting.axis)),
        members_(mesh::group_members(request.mesh, rank, setting.axis)),
        source_(source) {}

  std::vector<Expectation> of(const CollectiveCase& one) {
    result_.clear();
    for (std::uint64_t call = 0; call < one.calls; ++call) received(one, call * one.stride);
    if (one.place == Place::out_of_place) {
      // The data that was sent must not have changed.
      result_.push_back({.slice = {.buffer = source_, .count = one.calls * one.stride},
                         .sources = {rank_},
                         .first = 0});
    }
    return result_;
  }

 private:
  [[nodiscard]] int root() const { return members_[static_cast<std::size_t>(setting_.root)]; }
  [[nodiscard]] bool is_root() const { return place_ == setting_.root; }

  void add(std::uint64_t offset, std::uint64_t count, std::vector<int> sources, std::uint64_t first,
           const CollectiveCase& one) {
    result_.push_back({.slice = {.buffer = source_ + 1, .offset = offset, .count = count},
                       .sources = std::move(sources),
                       .reduction = one.reduction.value_or(program::Reduction::sum),
                       .first = first});
  }

  /// Adds the values of one call. `base` is the index of the call's first element in both buffers,
  /// and thus in the pattern.
  void received(const CollectiveCase& one, std::uint64_t base) {
    const auto n = static_cast<std::uint64_t>(setting_.members);
    const auto me = static_cast<std::uint64_t>(place_);
    const bool in_place = one.place == Place::in_place;
    const std::uint64_t own = base + me * one.count;
    switch (one.operation) {
      case Operation::all_reduce:
        return add(base, one.stride, members_, base, one);
      case Operation::reduce:
        if (is_root()) add(base, one.stride, members_, base, one);
        return;
      case Operation::reduce_scatter:
        return add(in_place ? own : base, one.count, members_, own, one);
      case Operation::broadcast:
        return add(base, one.stride, {root()}, base, one);
      case Operation::scatter:
        return add(in_place ? own : base, one.count, {root()}, own, one);
      case Operation::gather:
        if (!is_root()) return;
        [[fallthrough]];
      case Operation::all_gather:
        for (std::uint64_t other = 0; other < n; ++other) {
          // Out of place, each rank sends the beginning of its pattern; in place, it sends the part
          // at its own place.
          add(base + other * one.count, one.count, {members_[other]},
              in_place ? base + other * one.count : base, one);
        }
        return;
      case Operation::all_to_all:
        for (std::uint64_t other = 0; other < n; ++other) {
          add(base + other * one.count, one.count, {members_[other]}, own, one);
        }
        return;
      case Operation::sendrecv:
        return add(base, one.stride, {members_[(me + n - 1) % n]}, base, one);
      case Operation::barrier:
        return;
    }
  }

  const Setting& setting_;
  int rank_, place_;
  std::vector<int> members_;
  program::BufferId source_;
  std::vector<Expectation> result_;
};

}  // namespace

const OperationRow& row_of(Operation operation) {
  return operations[static_cast<std::size_t>(operation)];
}

std::string_view name(Implementation implementation) {
  return implementation_names[static_cast<std::size_t>(implementation)];
}

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::list<&Values::op>(
          "op",
          "all_reduce,reduce_scatter,all_gather,broadcast,reduce,all_to_all,gather,scatter,"
          "sendrecv,barrier",
          {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all",
           "gather", "scatter", "sendrecv", "barrier"},
          "operations to measure; in sendrecv each rank sends to the next on a ring"),
      option::text<&Values::sizes>(
          "sizes", "8..1GiB",
          "message sizes: a list of sizes and of ranges that double (8..1GiB) or grow by a factor "
          "(8..1GiB*4), counted as nccl-tests counts them"),
      option::list<&Values::types>(
          "types", "", {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i64", "i32", "i8", "u8"},
          "element types; default: the type that --dtype stores"),
      option::list<&Values::reduction>("reduction", "sum", {"sum", "min", "max"},
                                       "reductions to measure, for the operations that reduce"),
      option::choice<&Values::in_place>("in_place", "both", {"no", "yes", "both"},
                                        "whether results overwrite the data sent; all_to_all, "
                                        "sendrecv and barrier are measured out of place only"),
      option::choice<&Values::axis>(
          "axis", "world", {"world", "tp", "cp", "ep", "dp", "pp"},
          "ranks that communicate: all of them, or those along an axis of --mesh"),
      option::choice<&Values::groups>(
          "groups", "all", {"all", "one", "both"},
          "with axis: all groups along it at once, or the first one alone"),
      option::list<&Values::implementation>(
          "implementation", "library", {"library", "ring", "tree", "recursive-doubling"},
          "the library's collective, or a textbook algorithm made of exchanges and additions "
          "(all_reduce, all_gather, reduce_scatter)"),
      option::integer<&Values::root>("root", "0", {0, 1'000'000},
                                     "root of broadcast and the like, as a position in the group"),
      option::bytes<&Values::rotate>("rotate", "64MiB", {},
                                     "use new memory in each call until this many bytes, or 256 "
                                     "calls (64 on a GPU), so that caches do not hold the data"),
  };
  return table;
}

std::vector<program::DType> types_of(const Request& request) {
  return element_types(request, values_of(request).types);
}

Setting setting_of(const Request& request) {
  const Values options = values_of(request);
  Setting setting{.axis_name = options.axis};
  std::vector<mesh::Axis> wide;
  for (const mesh::Axis axis : mesh::all_axes) {
    if (request.mesh[axis] > 1) wide.push_back(axis);
  }
  if (setting.axis_name == "world") {
    if (wide.size() > 1) {
      throw usage_error(
          "axis=world means all ranks in one row, not the mesh {}; leave --mesh out, or name an "
          "axis of it",
          mesh::to_string(request.mesh));
    }
    if (!wide.empty()) setting.axis = wide.front();
  } else {
    const auto found = std::ranges::find(mesh::all_axes, std::string_view{setting.axis_name},
                                         [](mesh::Axis axis) { return mesh::name(axis); });
    setting.axis = *found;
    if (request.mesh[setting.axis] == 1 && request.mesh.size() > 1) {
      throw usage_error("axis={0}: the mesh {1} has no axis {0}; give it one, such as --mesh {0}=2",
                        setting.axis_name, mesh::to_string(request.mesh));
    }
  }
  setting.members = request.mesh[setting.axis];
  setting.root = options.root;
  if (setting.root >= setting.members) {
    throw usage_error("root={}: a group has {} rank{}, counted from 0", setting.root,
                      setting.members, setting.members == 1 ? "" : "s");
  }
  return setting;
}

std::vector<CollectiveCase> cases_of(const Request& request, const Setting& setting) {
  std::vector<CollectiveCase> cases = Lister{request, setting}.list();
  if (cases.empty()) {
    throw usage_error(
        "nothing to measure on {} ranks: no size of sizes={} leaves a rank 16 bytes, or what was "
        "asked for does not exist (in place: not all_to_all, sendrecv, barrier; textbook "
        "algorithms: sums out of place, recursive doubling on powers of two)",
        setting.members, values_of(request).sizes);
  }
  return cases;
}

std::vector<Expectation> expect(const Request& request, int /*batch*/, std::size_t index,
                                int rank) {
  const Setting setting = setting_of(request);
  const std::vector<CollectiveCase> cases = cases_of(request, setting);
  std::map<program::DType, bool> has_scratch;  // in the order in which buffers are allocated
  for (const CollectiveCase& one : cases) {
    if (one.operation == Operation::barrier) continue;
    has_scratch[one.type] |= one.implementation != Implementation::library;
  }
  std::map<program::DType, program::BufferId> source;
  program::BufferId next = 0;
  for (const auto& [type, scratch] : has_scratch) {
    source[type] = next;
    next += scratch ? 3 : 2;
  }
  const CollectiveCase& one = cases.at(index);
  const bool idle =
      one.groups == Groups::one && mesh::group_colour(request.mesh, rank, setting.axis) != 0;
  if (idle || one.operation == Operation::barrier) return {};
  return Expecter{request, setting, rank, source.at(one.type)}.of(one);
}

}  // namespace isoscale::workloads::collectives
