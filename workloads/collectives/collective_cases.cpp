// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "workloads/collectives/collectives.hpp"

namespace isoscale::workloads::collectives {

namespace {

using program::Reduction;

using program::CollectiveKind;

/// The operations, in the order of Operation's enumerators.
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

constexpr std::array<std::string_view, 4> implementation_names{"library", "ring", "tree",
                                                               "recursive-doubling"};

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const OperationRow& row : operations) names.push_back(row.name);
  return names;
}

/// nccl-tests rounds each rank's part down to a multiple of this many bytes, so that loads are
/// aligned.
constexpr std::uint64_t part_alignment = 16;

/// A timed play has as many calls as it takes to move this many bytes, but at most `most_calls`,
/// and only one pass of calls if they overwrite their own input.
constexpr std::uint64_t bytes_of_play = std::uint64_t{64} << 20U;

constexpr std::uint64_t most_calls = 1024, most_ops = 256;  // most calls in a play, in a pass

std::vector<Place> places_of(Place asked, Operation operation) {
  const bool only_out = operation == Operation::all_to_all || operation == Operation::sendrecv ||
                        operation == Operation::barrier;
  if (asked == Place::out_of_place || (asked == Place::both && only_out)) {
    return {Place::out_of_place};
  }
  if (only_out) return {};
  if (asked == Place::in_place) return {Place::in_place};
  return {Place::out_of_place, Place::in_place};
}

/// True if the case can be measured. Textbook algorithms work only out of place, reduce only by
/// sums, and exist for some operations only: tree for all_reduce, the others also for all_gather
/// and reduce_scatter. Recursive doubling needs a number of ranks that is a power of two.
bool exists(Implementation implementation, Operation operation, Place place,
            std::optional<Reduction> reduction, int members) {
  if (implementation == Implementation::library) return true;
  if (place == Place::in_place || reduction.value_or(Reduction::sum) != Reduction::sum) {
    return false;
  }
  if (implementation == Implementation::tree) return operation == Operation::all_reduce;
  const bool is_power = std::has_single_bit(static_cast<unsigned>(members));
  return (implementation == Implementation::ring || is_power) &&
         (operation == Operation::all_reduce || operation == Operation::all_gather ||
          operation == Operation::reduce_scatter);
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

/// Returns a case for each combination of element type, reduction, implementation and placement
/// that the options ask for and that exists for the operation. The sizes of these cases are not set
/// yet; in_sizes() sets them.
std::vector<CollectiveCase> forms_of(const Request& request, const Setting& setting, Groups groups,
                                     Operation operation) {
  const Values& options = setting.options;
  std::vector<std::optional<Reduction>> reductions{std::nullopt};
  if (row_of(operation).reduces) {
    reductions.assign(options.reduction.begin(), options.reduction.end());
  }
  std::vector<CollectiveCase> forms;
  for (const program::DType type : types_of(request, options)) {
    for (const std::optional<Reduction> reduction : reductions) {
      for (const Implementation implementation : options.implementation) {
        for (const Place place : places_of(options.in_place, operation)) {
          if (!exists(implementation, operation, place, reduction, setting.members)) continue;
          forms.push_back({.operation = operation,
                           .type = type,
                           .reduction = reduction,
                           .place = place,
                           .implementation = implementation,
                           .groups = groups});
        }
      }
    }
  }
  return forms;
}

/// Returns a copy of `one` for each size, after rounding, at which every rank has some data. Throws
/// base::UsageError for a size with more elements than one call can take.
std::vector<CollectiveCase> in_sizes(CollectiveCase one, const std::vector<std::uint64_t>& sizes,
                                     int members) {
  std::vector<CollectiveCase> cases;
  std::uint64_t last = 0;  // the size of the last case; rounding may make two sizes equal
  for (const std::uint64_t asked : sizes) {
    realise(one, asked, members);
    // The ring algorithm for all_reduce cuts the data into as many parts as there are ranks. The
    // other textbook algorithms are measured at the same sizes.
    const bool cuts =
        one.implementation != Implementation::library && one.operation == Operation::all_reduce;
    if (one.count == 0 || one.bytes == last ||
        (cuts && one.count < static_cast<std::uint64_t>(members))) {
      continue;
    }
    if (one.stride > UINT32_MAX) {
      throw usage_error(
          "sizes: {} bytes are {} elements of {}, more than one call takes: at most {}", one.bytes,
          one.stride, program::name(one.type), UINT32_MAX);
    }
    last = one.bytes;
    cases.push_back(one);
  }
  return cases;
}

}  // namespace

std::vector<Expectation> received(const CollectiveCase& one, const Member& me,
                                  program::BufferId buffer, std::uint64_t base) {
  const bool only_root = one.operation == Operation::reduce || one.operation == Operation::gather;
  if (only_root && me.index != me.root) return {};
  const auto n = static_cast<std::uint64_t>(me.ranks.size());
  const auto index = static_cast<std::uint64_t>(me.index);
  const bool in_place = one.place == Place::in_place;
  const std::uint64_t own = base + index * one.count;
  const std::vector<int> root{me.ranks[static_cast<std::size_t>(me.root)]};
  std::vector<Expectation> result;
  const auto add = [&](std::uint64_t offset, std::uint64_t count, std::vector<int> sources,
                       std::uint64_t first) {
    result.push_back({.slice = {.buffer = buffer, .offset = offset, .count = count},
                      .sources = std::move(sources),
                      .reduction = one.reduction.value_or(program::Reduction::sum),
                      .first = first});
  };
  switch (one.operation) {
    case Operation::all_reduce:
    case Operation::reduce:
      add(base, one.stride, me.ranks, base);
      break;
    case Operation::reduce_scatter:
      add(in_place ? own : base, one.count, me.ranks, own);
      break;
    case Operation::broadcast:
      add(base, one.stride, root, base);
      break;
    case Operation::scatter:
      add(in_place ? own : base, one.count, root, own);
      break;
    case Operation::gather:
    case Operation::all_gather:
    case Operation::all_to_all:
      for (std::uint64_t other = 0; other < n; ++other) {
        // In all_to_all each rank sends a receiver the part at the receiver's index. In the other
        // operations it sends the beginning of its pattern or, in place, the part at its own index.
        const std::uint64_t there = base + other * one.count;
        add(there, one.count, {me.ranks[other]},
            one.operation == Operation::all_to_all ? own
            : in_place                             ? there
                                                   : base);
      }
      break;
    case Operation::sendrecv:
      add(base, one.stride, {me.ranks[(index + n - 1) % n]}, base);
      break;
    case Operation::barrier:
      break;
  }
  return result;
}

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
          operation_names(),
          "operations to measure; in sendrecv each rank sends to the next on a ring"),
      option::parsed<&Values::sizes, parse_sizes>(
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
          "implementation", "library", {implementation_names.begin(), implementation_names.end()},
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

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

std::vector<program::DType> types_of(const Request& request, const Values& options) {
  return options.types.empty() ? std::vector{stored_type(request.precision)} : options.types;
}

Setting setting_of(const Request& request, Values options) {
  Setting setting{.options = std::move(options)};
  const std::string& axis_name = setting.options.axis;
  const bool is_world = axis_name == "world";
  const int all = request.mesh.size();
  for (const mesh::Axis axis : mesh::all_axes) {
    const bool is_asked =
        is_world ? all > 1 && request.mesh[axis] == all : mesh::name(axis) == axis_name;
    if (is_asked) setting.axis = axis;
  }
  if (is_world && request.mesh[setting.axis] != all) {
    throw usage_error(
        "axis=world means all ranks in one row, not the mesh {}; leave --mesh out, or name an "
        "axis of it",
        mesh::to_string(request.mesh));
  }
  if (request.mesh[setting.axis] == 1 && all > 1) {
    throw usage_error("axis={0}: the mesh {1} has no axis {0}; give it one, such as --mesh {0}=2",
                      axis_name, mesh::to_string(request.mesh));
  }
  setting.members = request.mesh[setting.axis];
  if (setting.options.root >= setting.members) {
    throw usage_error("root={}: a group has {} rank{}, counted from 0", setting.options.root,
                      setting.members, setting.members == 1 ? "" : "s");
  }
  return setting;
}

std::vector<CollectiveCase> cases_of(const Request& request, const Setting& setting) {
  const Values& options = setting.options;
  const std::uint64_t most = std::min(most_ops, request.bounds.most_short_calls);
  std::vector<CollectiveCase> cases;
  for (const Groups groups : {Groups::all, Groups::one}) {
    if (options.groups != Groups::both && options.groups != groups) continue;
    for (const Operation operation : options.op) {
      if (operation == Operation::barrier) {
        cases.push_back({.operation = operation,
                         .groups = groups,
                         .calls = most,
                         .most_times = most_calls / most});
        continue;
      }
      for (const CollectiveCase& form : forms_of(request, setting, groups, operation)) {
        for (CollectiveCase& one : in_sizes(form, options.sizes.bytes, setting.members)) {
          plan_calls(one, options.rotate, most);
          cases.push_back(one);
        }
      }
    }
  }
  if (cases.empty()) {
    throw usage_error(
        "nothing to measure on {} ranks: no size of sizes={} leaves a rank 16 bytes, or what was "
        "asked for does not exist (in place: not all_to_all, sendrecv, barrier; textbook "
        "algorithms: sums out of place, recursive doubling on powers of two)",
        setting.members, options.sizes.text);
  }
  return cases;
}

std::vector<Expectation> expect(const Request& request, const Values& options, std::size_t index,
                                int rank) {
  const Setting setting = setting_of(request, options);
  const std::vector<CollectiveCase> cases = cases_of(request, setting);
  std::map<program::DType, bool> has_scratch;  // same order as in Writer::allocate()
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
  const Member me{.index = mesh::group_index(request.mesh, rank, setting.axis),
                  .ranks = mesh::group_members(request.mesh, rank, setting.axis),
                  .root = setting.options.root};
  const program::BufferId sent = source.at(one.type);
  std::vector<Expectation> result;
  for (std::uint64_t call = 0; call < one.calls; ++call) {
    std::ranges::move(received(one, me, sent + 1, call * one.stride), std::back_inserter(result));
  }
  if (one.place == Place::out_of_place) {  // the data that was sent must not have changed
    result.push_back(
        {.slice = {.buffer = sent, .count = one.calls * one.stride}, .sources = {rank}});
  }
  return result;
}

}  // namespace isoscale::workloads::collectives
