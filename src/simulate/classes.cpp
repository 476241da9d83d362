// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/classes.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "simulate/at.hpp"

namespace isoscale::simulate {
namespace {

mesh::Shape with_extent(mesh::Shape shape, mesh::Axis axis, int extent) {
  const std::array extents{&shape.tp, &shape.cp, &shape.ep, &shape.dp, &shape.pp};
  *extents[static_cast<std::size_t>(axis)] = extent;
  return shape;
}

bool has_messages(const program::OutlineSet& set, mesh::Axis axis) {
  return std::any_of(set.outlines.begin(), set.outlines.end(), [&](const auto& outline) {
    return std::any_of(outline.transfers.begin(), outline.transfers.end(),
                       [&](const auto& transfer) { return transfer.axis == axis; });
  });
}

/// For each coordinate of `axis` the first one like it: ranks that differ in nothing else have the
/// same program.
std::vector<int> first_alike(const std::vector<std::uint32_t>& program, const mesh::Shape& shape,
                             mesh::Axis axis) {
  const std::size_t stride = at(mesh::stride(shape, axis)), extent = at(shape[axis]);
  const auto alike = [&](std::size_t a, std::size_t b) {
    for (std::size_t outer = 0; outer < program.size(); outer += stride * extent) {
      const auto row = program.begin() + static_cast<std::ptrdiff_t>(outer);
      const auto of = [&](std::size_t c) { return row + static_cast<std::ptrdiff_t>(c * stride); };
      if (!std::equal(of(a), of(a + 1), of(b))) return false;
    }
    return true;
  };
  std::vector<int> first, distinct;
  for (int c = 0; c < shape[axis]; ++c) {
    const auto found = std::find_if(distinct.begin(), distinct.end(),
                                    [&](int other) { return alike(at(other), at(c)); });
    first.push_back(found == distinct.end() ? c : *found);
    if (found == distinct.end()) distinct.push_back(c);
  }
  return first;
}

/// The number of each kept coordinate among those that are kept, for every coordinate.
std::vector<int> kept_numbers(const std::vector<int>& first) {
  std::vector<int> number(first.size());
  int kept = 0;
  for (std::size_t c = 0; c < first.size(); ++c) {
    number[c] = first[c] == static_cast<int>(c) ? kept++ : number[at(first[c])];
  }
  return number;
}

}  // namespace

Classes classes_of(const program::ProgramSet& set, program::Section section) {
  if (set.program_of_rank.size() != at(set.mesh.size())) {
    throw std::invalid_argument("a program set has not one program for each rank of its mesh");
  }
  Classes classes{.kept = {},
                  .outline = program::outline(set, section),
                  .rank = {},
                  .program = set.program_of_rank,
                  .class_of_rank = {}};
  mesh::Shape shape = set.mesh;
  std::uint8_t kept = 0;
  for (int rank = 0; rank < shape.size(); ++rank) {
    classes.rank.push_back(rank);
    classes.class_of_rank.push_back(static_cast<std::uint32_t>(rank));
  }
  for (const mesh::Axis axis : mesh::all_axes) {
    if (shape[axis] == 1) continue;
    const std::vector<int> first = first_alike(classes.program, shape, axis);
    const std::vector<int> number = kept_numbers(first);
    const int extent = 1 + *std::max_element(number.begin(), number.end());
    if (extent > 1) kept |= mesh::AxisSet{axis}.bits();
    if (extent == shape[axis] || (extent > 1 && has_messages(classes.outline, axis))) continue;
    const mesh::Shape smaller = with_extent(shape, axis, extent);
    const int stride = mesh::stride(shape, axis);
    std::vector<std::uint32_t> new_rank(at(shape.size()));
    std::vector<int> rank_kept(at(smaller.size()), -1);
    std::vector<std::uint32_t> program_kept(at(smaller.size()));
    for (int rank = 0; rank < shape.size(); ++rank) {
      const int coordinate = rank / stride % shape[axis];
      const int outer = rank / (stride * shape[axis]);
      const int to = (outer * extent + number[at(coordinate)]) * stride + rank % stride;
      new_rank[at(rank)] = static_cast<std::uint32_t>(to);
      if (rank_kept[at(to)] >= 0) continue;
      rank_kept[at(to)] = classes.rank[at(rank)];
      program_kept[at(to)] = classes.program[at(rank)];
    }
    for (std::uint32_t& of : classes.class_of_rank) of = new_rank[of];
    classes.rank = std::move(rank_kept);
    classes.program = std::move(program_kept);
    shape = smaller;
  }
  classes.kept = mesh::AxisSet::from_bits(kept);
  classes.outline.mesh = shape;
  classes.outline.outline_of_rank = classes.program;
  return classes;
}

}  // namespace isoscale::simulate
