// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "config/command_line.hpp"
#include "config/completion.hpp"

namespace isoscale::config {
namespace {

using Commands = std::span<const CompletedCommand>;
using Words = std::vector<std::string>;

std::string quoted(const std::string& text) { return shell_quoted({&text, 1}); }

bool any_is_beginning(const Words& words) {
  return std::ranges::any_of(words, [](const std::string& word) { return word.ends_with('='); });
}

/// Returns the words that may follow the program: commands, and its own options.
Words first_words(Commands commands) {
  Words words;
  for (const CompletedCommand& command : commands) {
    if (!command.name.empty()) {
      words.push_back(command.name);
      continue;
    }
    for (const CompletedOption& option : command.options) words.push_back(option.flag);
  }
  return words;
}

// ---- bash

constexpr std::string_view bash_head =
    R"(# bash completion of isoscale, made by 'isoscale completion bash'
_isoscale() {
  local IFS=$' \t\n'
  local current=${COMP_WORDS[COMP_CWORD]} place=$((COMP_CWORD - 1)) joined=no
  # bash takes --option=value apart into three words.
  if [[ $current == = ]]; then
    current='' joined=yes
  elif [[ ${COMP_WORDS[place]} == = ]]; then
    place=$((place - 1)) joined=yes
  fi
  local previous=${COMP_WORDS[place]}
  [[ $joined == yes && $previous != --* ]] && return
  local words='' endings='' list=no word ending
  COMPREPLY=()
  case "$COMP_CWORD ${COMP_WORDS[1]} $previous" in
)";

constexpr std::string_view bash_tail = R"(  esac
  local before=''
  [[ $list == yes && $current == *,* ]] && before=${current%,*},
  for word in $words; do
    [[ $word == "${current#"$before"}"* ]] && COMPREPLY+=("$before$word")
  done
  # compopt says no where no line is being edited.
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  [[ -n $endings ]] && compopt -o filenames 2>/dev/null
  if [[ -n $endings ]]; then
    while read -r word; do
      COMPREPLY+=("$before$word")
    done < <(read -ra endings <<<"$endings"  # an array: globs must not become file names here
      for ending in "${endings[@]}"; do compgen -f -X "!$ending" -- "${current#"$before"}"; done
      compgen -d -- "${current#"$before"}")
  fi
  return 0
}
complete -F _isoscale isoscale
)";

/// Returns a file pattern for each ending: "*.h5" for ".h5", "*" for "".
Words globs(const Words& endings) {
  Words result;
  for (const std::string& ending : endings) result.push_back("*" + ending);
  return result;
}

/// Returns one branch of the case statement in the bash script. It completes command lines that
/// match `pattern`.
std::string bash_branch(std::string_view pattern, const Candidates& candidates) {
  std::string text = fmt::format("    {})\n", pattern);
  if (candidates.empty()) return text + "      return ;;\n";
  if (!candidates.words.empty()) {
    text += fmt::format("      words='{}'\n", fmt::join(candidates.words, " "));
  }
  if (!candidates.endings.empty()) {
    text += fmt::format("      endings='{}'\n", fmt::join(globs(candidates.endings), " "));
  }
  if (candidates.between_commas) text += "      list=yes\n";
  return text + "      ;;\n";
}

std::string bash_command(const CompletedCommand& command) {
  std::string text;
  Candidates other;
  for (const CompletedOption& option : command.options) {
    other.words.push_back(option.flag);
    if (option.placeholder.empty()) continue;
    text += bash_branch(fmt::format("*' {} {}'", command.name, option.flag), option.value);
  }
  const auto& arguments = command.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Candidates here = arguments[i];
    here.words.insert(here.words.end(), other.words.begin(), other.words.end());
    // An option before an argument would shift the argument's position. That cannot happen:
    // commands with several arguments have no options.
    const bool last = i + 1 == arguments.size();
    const std::string place = last ? "*" : fmt::format("'{} '", i + 2);
    text += bash_branch(fmt::format("{}' {} '*", place, command.name), here);
  }
  if (arguments.empty()) text += bash_branch(fmt::format("*' {} '*", command.name), other);
  return text;
}

std::string bash_script(Commands commands) {
  std::string text{bash_head};
  text += bash_branch("'1 '*", {.words = first_words(commands), .endings = {}});
  for (const CompletedCommand& command : commands) {
    if (!command.name.empty()) text += bash_command(command);
  }
  return text + std::string{bash_tail};
}

// ---- zsh

/// Escapes brackets and colons, which have a meaning to _arguments and _describe.
std::string zsh_escaped(std::string_view text) {
  constexpr std::string_view special = R"([]:\)";
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// Returns the zsh action that completes a value.
std::string zsh_action(const Candidates& candidates) {
  if (candidates.empty()) return " ";
  std::string words;
  if (!candidates.words.empty()) {
    words = fmt::format("{}compadd {}- {}", candidates.between_commas ? "_sequence " : "",
                        any_is_beginning(candidates.words) ? "-S '' " : "",
                        fmt::join(candidates.words, " "));
  }
  if (candidates.endings.empty()) return words;
  const std::string files =
      fmt::format("_files -g '{}'", fmt::join(globs(candidates.endings), " "));
  if (words.empty()) return files;
  // A bare colon would end the action.
  return fmt::format(R"(_alternative "words\:word\:{}" "files\:file\:{}")", words, files);
}

std::string zsh_command(const CompletedCommand& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  const auto add = [&](const std::string& spec) { text += " \\\n        " + quoted(spec); };
  for (const CompletedOption& option : command.options) {
    const std::string help = zsh_escaped(option.help);
    if (option.placeholder.empty()) {
      add(fmt::format("{}[{}]", option.flag, help));
    } else {
      add(fmt::format("*{}=[{}]:{}:{}", option.flag, help, zsh_escaped(option.placeholder),
                      zsh_action(option.value)));
    }
  }
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const bool last = i + 1 == command.arguments.size();
    add(fmt::format("{}:argument:{}", last ? "*" : std::to_string(i + 1),
                    zsh_action(command.arguments[i])));
  }
  return text + "\n      ;;\n";
}

std::string zsh_script(Commands commands) {
  std::string text =
      "#compdef isoscale\n# zsh completion of isoscale, made by 'isoscale completion zsh'\n"
      "_isoscale() {\n  if (( CURRENT == 2 )); then\n    local -a first=(";
  std::string branches;
  for (const CompletedCommand& command : commands) {
    if (command.name.empty()) {
      for (const CompletedOption& option : command.options) {
        text += "\n      " + quoted(fmt::format("{}:{}", option.flag, zsh_escaped(option.help)));
      }
      continue;
    }
    text += "\n      " + quoted(fmt::format("{}:{}", command.name, zsh_escaped(command.help)));
    branches += zsh_command(command);
  }
  return text + ")\n    _describe command first\n    return\n  fi\n" +
         "  local command=$words[2]\n  shift words\n  (( CURRENT -= 1 ))\n  case $command in\n" +
         branches +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _isoscale ]]; then\n  _isoscale \"$@\"\n"
         "else\n  compdef _isoscale isoscale\nfi\n";
}

// ---- fish

/// Returns the arguments of `complete` that describe a value.
std::string fish_value(const Candidates& candidates) {
  if (candidates.empty()) return "-x";
  Words parts;
  if (!candidates.words.empty()) {
    const std::string words = fmt::format("{}", fmt::join(candidates.words, " "));
    parts.push_back(candidates.between_commas ? fmt::format("(__fish_append , {})", words) : words);
  }
  for (const std::string& ending : candidates.endings) {
    parts.push_back(ending.empty() ? "(__fish_complete_path)"
                                   : fmt::format("(__fish_complete_suffix {})", ending));
  }
  return fmt::format("-x -a '{}'", fmt::join(parts, " "));
}

std::string fish_command(const CompletedCommand& command) {
  const std::string in_command = fmt::format("__fish_seen_subcommand_from {}", command.name);
  std::string text;
  for (const CompletedOption& option : command.options) {
    text += fmt::format("complete -c isoscale -n '{}' -l {}{}{} -d {}\n", in_command,
                        option.flag.substr(2), option.placeholder.empty() ? "" : " ",
                        option.placeholder.empty() ? "" : fish_value(option.value),
                        quoted(option.help));
  }
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const bool last = i + 1 == command.arguments.size();
    const std::string place = command.arguments.size() == 1
                                  ? ""
                                  : fmt::format("; and test (count (commandline -opc)) -{} {}",
                                                last ? "ge" : "eq", i + 2);
    text += fmt::format("complete -c isoscale -n '{}{}' {}\n", in_command, place,
                        fish_value(command.arguments[i]));
  }
  return text;
}

std::string fish_script(Commands commands) {
  std::string text =
      "# fish completion of isoscale, made by 'isoscale completion fish'\ncomplete -c isoscale "
      "-f\n";
  for (const CompletedCommand& command : commands) {
    if (!command.name.empty()) {
      text += fmt::format("complete -c isoscale -n __fish_use_subcommand -a {} -d {}\n",
                          command.name, quoted(command.help));
      continue;
    }
    for (const CompletedOption& option : command.options) {
      text += fmt::format("complete -c isoscale -n __fish_use_subcommand -l {} -d {}\n",
                          option.flag.substr(2), quoted(option.help));
    }
  }
  for (const CompletedCommand& command : commands) {
    if (!command.name.empty()) text += fish_command(command);
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell, Commands commands) {
  switch (shell) {
    case Shell::bash:
      return bash_script(commands);
    case Shell::zsh:
      return zsh_script(commands);
    case Shell::fish:
      return fish_script(commands);
  }
  throw std::logic_error("no such shell");
}

}  // namespace isoscale::config
