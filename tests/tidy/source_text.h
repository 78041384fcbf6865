#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearsal::tidy {

// A C++ file, seen in three ways that have the same length and the same line ends, so that a
// position in one is a position in all.
struct SourceText {
  std::string path;     // from the root of the repository
  std::string raw;      // as it is
  std::string code;     // comments, preprocessor lines and the insides of literals are blank
  std::string strings;  // only the insides of string literals
};

SourceText parse_source(std::string path, std::string raw);

std::vector<std::string_view> lines_of(std::string_view text);

// Whether names are made of it: letters, digits and the underscore.
bool is_word(char letter);

using WordVisitor = std::function<void(std::string_view word, size_t position)>;
void for_each_word(std::string_view text, const WordVisitor& visit);

// The number, from 1, of the line that holds the position.
int line_of(std::string_view text, size_t position);

struct Include {
  int line = 0;
  bool quoted = false;  // "file" and not <file>
  std::string file;
};

std::vector<Include> includes_of(const SourceText& source);

struct Literal {
  size_t position = 0;  // of its first quote
  std::string text;     // neighbours with only white space between them are one literal
};

// The string literals, in order, without raw ones.
std::vector<Literal> literals_of(const SourceText& source);

struct Function {
  std::string name;  // what stands before the parameters
  int line = 0;
  int line_count = 0;  // from the head's first line to the closing brace
};

// Functions with a body outside other functions: free ones, methods, tests, lambdas in variables.
std::vector<Function> functions_of(const SourceText& source);

}  // namespace rehearsal::tidy
