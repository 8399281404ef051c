#include <iostream>

#include <flow/flow.h>

int main() {
  std::cout << "flow " << flow::version() << '\n';
}
