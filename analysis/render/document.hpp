// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "analysis/unit.hpp"
#include "statistics/robust.hpp"

/// A report as parts that know nothing of how they are shown. Numbers stay numbers and texts stay
/// as they are in run files: a writer formats, escapes, wraps and shortens them.
namespace isoscale::analysis {

/// A cell holds nothing, a number with its 95% interval where it has one, or words.
using Value = std::variant<std::monostate, Located, std::string>;

/// A table that is too wide for the page loses these parts, the last of this list first.
enum class Keep : std::uint8_t {
  always,
  without_interval,  ///< its numbers may lose their intervals
  if_it_fits,        ///< the whole column may go
};

struct DocumentColumn {
  std::string key;      ///< for programs: "step_time"
  std::string heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  Keep keep = Keep::always;
};

struct DocumentTable {
  std::vector<DocumentColumn> columns;
  std::vector<std::vector<Value>> rows;  ///< each as long as `columns`
};

/// A title of a part; an empty line before it.
struct Heading {
  std::string text;
};

enum class Lines : std::uint8_t { as_needed, one };

struct Paragraph {
  std::string text;
  Lines lines = Lines::as_needed;  ///< one: what is too long is cut
};

/// A sentence behind a short key: "WARNING", "~13%", "".
struct Note {
  std::string key, text;
  Lines lines = Lines::as_needed;
};

using Block = std::variant<Heading, Paragraph, std::vector<Note>, DocumentTable>;
using Document = std::vector<Block>;

/// Plain text, no line wider than `columns`, except where a single word is.
[[nodiscard]] std::string to_text(const Document& document, std::size_t columns);
/// Markdown with all columns and intervals, nothing shortened; a heading that comes first is the
/// title.
[[nodiscard]] std::string to_markdown(const Document& document);

}  // namespace isoscale::analysis
